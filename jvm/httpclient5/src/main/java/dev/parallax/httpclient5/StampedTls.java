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

/** Times TLS handshakes and reports them to the attempt whose connect they are part of. */
final class StampedTls {
    /** Context attribute of a classic client that holds the connecting attempt. */
    private static final String ATTEMPT = "dev.parallax.attempt";

    /**
     * The handshake that ends on this thread right now. The strategy of an asynchronous client gets no context, but the
     * end of the handshake is reported in the same call as the end of the connect.
     */
    private static final ThreadLocal<Handshake> ENDED = new ThreadLocal<>();

    private record Handshake(long sinceNs, long untilNs) {}

    private StampedTls() {}

    static void expect(HttpContext context, Attempt attempt) {
        if (attempt == null) {
            context.removeAttribute(ATTEMPT);
        } else {
            context.setAttribute(ATTEMPT, attempt);
        }
    }

    /** The connect of {@code attempt} has ended on this thread; if a handshake ends here too, it was part of it. */
    static void recordEnded(Attempt attempt) {
        Handshake ended = ENDED.get();
        if (ended != null) {
            attempt.recordHandshake(ended.sinceNs, ended.untilNs);
            ENDED.remove();
        }
    }

    /** The connect of {@code attempt} has failed on this thread; if a handshake failed here too, that was the cause. */
    static void recordFailed(Attempt attempt) {
        if (ENDED.get() != null) {
            attempt.enterTls();
            ENDED.remove();
        }
    }

    /** Wraps a strategy; one that is wrapped already is returned as it is. */
    static TlsSocketStrategy of(TlsSocketStrategy strategy) {
        return strategy instanceof Classic ? strategy : new Classic(strategy);
    }

    /** Wraps a strategy; one that is wrapped already is returned as it is. */
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
            attempt.enterTls();
            long sinceNs = System.nanoTime();
            SSLSocket secured = strategy.upgrade(socket, target, port, attachment, context);
            attempt.recordHandshake(sinceNs, System.nanoTime());
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
            runStamped(() -> callback.completed(layer));
        }

        @Override
        public void failed(Exception thrown) {
            runStamped(() -> callback.failed(thrown));
        }

        @Override
        public void cancelled() {
            runStamped(callback::cancelled);
        }

        private void runStamped(Runnable end) {
            ENDED.set(new Handshake(sinceNs, System.nanoTime()));
            try {
                end.run();
            } finally {
                ENDED.remove();
            }
        }
    }
}
