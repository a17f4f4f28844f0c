package dev.parallax.httpclient5;

import java.io.IOException;
import java.net.Socket;
import java.net.SocketAddress;
import javax.net.ssl.SSLSocket;
import org.apache.hc.client5.http.ssl.TlsSocketStrategy;
import org.apache.hc.core5.concurrent.FutureCallback;
import org.apache.hc.core5.http.HttpHost;
import org.apache.hc.core5.http.nio.ssl.TlsStrategy;
import org.apache.hc.core5.http.protocol.HttpContext;
import org.apache.hc.core5.net.NamedEndpoint;
import org.apache.hc.core5.reactor.ssl.TransportSecurityLayer;
import org.apache.hc.core5.util.Timeout;

/** Stamps handshakes and hands them to the attempt whose connect they are part of. */
final class StampedTls {
    /** Under this name a classic client's context holds the attempt that connects. */
    private static final String ATTEMPT = "dev.parallax.attempt";

    /**
     * The handshake whose end is being told on this thread: an asynchronous client's strategy is given no context, but the
     * end of its handshake is the end of the connect, told in the same call.
     */
    private static final ThreadLocal<Handshake> ENDS = new ThreadLocal<>();

    private record Handshake(long sinceNs, long untilNs) {}

    private StampedTls() {}

    static void expect(HttpContext context, Attempt attempt) {
        if (attempt == null) {
            context.removeAttribute(ATTEMPT);
        } else {
            context.setAttribute(ATTEMPT, attempt);
        }
    }

    /** The connect of {@code attempt} has ended on this thread: with a handshake, if one ends here as well. */
    static void take(Attempt attempt) {
        Handshake ended = ENDS.get();
        if (ended != null) {
            attempt.shookHands(ended.sinceNs, ended.untilNs);
            ENDS.remove();
        }
    }

    /** The connect of {@code attempt} has failed on this thread: in a handshake, if one fails here as well. */
    static void takeFailed(Attempt attempt) {
        if (ENDS.get() != null) {
            attempt.isInHandshake();
            ENDS.remove();
        }
    }

    /** One that stamps already is left as it is. */
    static TlsSocketStrategy of(TlsSocketStrategy strategy) {
        return strategy instanceof Classic ? strategy : new Classic(strategy);
    }

    /** One that stamps already is left as it is. */
    static TlsStrategy of(TlsStrategy strategy) {
        return strategy instanceof Asynchronous ? strategy : new Asynchronous(strategy);
    }

    private record Classic(TlsSocketStrategy strategy) implements TlsSocketStrategy {
        @Override
        public SSLSocket upgrade(Socket socket, String target, int port, Object attachment, HttpContext context)
                throws IOException {
            if (context == null || !(context.getAttribute(ATTEMPT) instanceof Attempt attempt)) {
                return strategy.upgrade(socket, target, port, attachment, context);
            }
            attempt.isInHandshake();
            long sinceNs = System.nanoTime();
            SSLSocket secured = strategy.upgrade(socket, target, port, attachment, context);
            attempt.shookHands(sinceNs, System.nanoTime());
            return secured;
        }
    }

    private record Asynchronous(TlsStrategy strategy) implements TlsStrategy {
        @Override
        @Deprecated
        public boolean upgrade(
                TransportSecurityLayer layer,
                HttpHost host,
                SocketAddress local,
                SocketAddress remote,
                Object attachment,
                Timeout timeout) {
            return strategy.upgrade(layer, host, local, remote, attachment, timeout);
        }

        @Override
        public void upgrade(
                TransportSecurityLayer layer,
                NamedEndpoint endpoint,
                Object attachment,
                Timeout timeout,
                FutureCallback<TransportSecurityLayer> callback) {
            strategy.upgrade(layer, endpoint, attachment, timeout, callback == null ? null : new Stamped(callback));
        }
    }

    private static final class Stamped implements FutureCallback<TransportSecurityLayer> {
        private final FutureCallback<TransportSecurityLayer> callback;
        private final long sinceNs = System.nanoTime();

        Stamped(FutureCallback<TransportSecurityLayer> callback) {
            this.callback = callback;
        }

        @Override
        public void completed(TransportSecurityLayer layer) {
            tell(() -> callback.completed(layer));
        }

        @Override
        public void failed(Exception thrown) {
            tell(() -> callback.failed(thrown));
        }

        @Override
        public void cancelled() {
            tell(callback::cancelled);
        }

        private void tell(Runnable end) {
            ENDS.set(new Handshake(sinceNs, System.nanoTime()));
            try {
                end.run();
            } finally {
                ENDS.remove();
            }
        }
    }
}
