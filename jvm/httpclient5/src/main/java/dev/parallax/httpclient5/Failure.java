package dev.parallax.httpclient5;

import java.io.InterruptedIOException;
import java.net.ConnectException;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.net.UnknownHostException;
import java.util.concurrent.CancellationException;
import java.util.concurrent.TimeoutException;
import javax.net.ssl.SSLException;
import org.apache.hc.client5.http.HttpHostConnectException;
import org.apache.hc.core5.http.ConnectionClosedException;
import org.apache.hc.core5.http.ConnectionRequestTimeoutException;
import org.apache.hc.core5.http.HttpException;
import org.apache.hc.core5.http.HttpStreamResetException;
import org.apache.hc.core5.http.NoHttpResponseException;

/** Maps exceptions to values of {@code error.type}; uses the outcome names of the run record where one applies. */
final class Failure {
    static final String CANCELLED = "cancelled";

    /** The application or the client released a response before its end. */
    static final String ABANDONED = "abandoned";

    static final String CONNECT_FAILED = "connect_failed";

    private static final String POOL_CLOSED = "pool_closed";
    private static final String UNKNOWN = "unknown";

    private Failure() {}

    /** A TLS failure belongs to the TLS phase even if the call that threw it also connects. */
    static Phase phaseOf(Phase phase, Throwable thrown) {
        return phase == Phase.CONNECT && hasCause(thrown, SSLException.class) ? Phase.TLS : phase;
    }

    static String typeOf(Phase phase, Throwable thrown) {
        if (hasCause(thrown, InterruptedException.class)) {
            return CANCELLED;
        }
        return switch (phase) {
            case POOL_WAIT -> ofWait(thrown);
            case CONNECT -> ofConnect(thrown);
            case TLS -> isTimeout(thrown) ? "connect_timeout" : "tls_failed";
            case WAIT, RECEIVE -> ofExchange(phase, thrown);
        };
    }

    private static String ofWait(Throwable thrown) {
        if (hasCause(thrown, ConnectionRequestTimeoutException.class) || hasCause(thrown, TimeoutException.class)) {
            return "checkout_timeout";
        }
        // Closing a pool cancels its waiters; later requests get an IllegalStateException.
        boolean isClosed = hasCause(thrown, IllegalStateException.class) || hasCause(thrown, CancellationException.class);
        return isClosed ? POOL_CLOSED : isCancel(thrown) ? CANCELLED : UNKNOWN;
    }

    private static String ofConnect(Throwable thrown) {
        if (hasCause(thrown, UnknownHostException.class)) {
            return "resolve_failed";
        }
        // Both kinds of client report a refused connection with this type, and a timeout with another.
        if (hasCause(thrown, HttpHostConnectException.class)) {
            return "connect_refused";
        }
        if (isTimeout(thrown)) {
            return "connect_timeout";
        }
        if (hasCause(thrown, ConnectException.class)) {
            return "connect_refused";
        }
        return isCancel(thrown) ? CANCELLED : CONNECT_FAILED;
    }

    private static String ofExchange(Phase phase, Throwable thrown) {
        if (isTimeout(thrown)) {
            return "request_timeout";
        }
        if (hasCause(thrown, NoHttpResponseException.class) || hasCause(thrown, ConnectionClosedException.class)) {
            return phase == Phase.WAIT ? "closed_before_response" : "incomplete_response";
        }
        if (isCancel(thrown) || isClosedHere(thrown)) {
            return CANCELLED;
        }
        // The class itself means that the body's consumer cancelled; a subclass is a reset by an HTTP/2 server.
        if (thrown.getClass() == HttpStreamResetException.class) {
            return CANCELLED;
        }
        if (hasCause(thrown, SocketException.class) || hasCause(thrown, HttpStreamResetException.class)) {
            return "reset";
        }
        return hasCause(thrown, HttpException.class) ? "protocol_error" : UNKNOWN;
    }

    private static boolean isTimeout(Throwable thrown) {
        return hasCause(thrown, SocketTimeoutException.class) || hasCause(thrown, TimeoutException.class);
    }

    /** An interrupted operation is reported by these types only; a timeout is a subclass of the second. */
    private static boolean isCancel(Throwable thrown) {
        return hasCause(thrown, CancellationException.class) || hasCause(thrown, InterruptedIOException.class);
    }

    /**
     * Closed by another thread or with the pool. The JDK has no type for this; the message has been the same since 1.4.
     */
    private static boolean isClosedHere(Throwable thrown) {
        return thrown instanceof SocketException && "Socket closed".equals(thrown.getMessage());
    }

    /** Bounded, because a chain of causes may be circular. */
    private static boolean hasCause(Throwable thrown, Class<? extends Throwable> type) {
        Throwable cause = thrown;
        for (int depth = 0; cause != null && depth < 16; depth++, cause = cause.getCause()) {
            if (type.isInstance(cause)) {
                return true;
            }
        }
        return false;
    }
}
