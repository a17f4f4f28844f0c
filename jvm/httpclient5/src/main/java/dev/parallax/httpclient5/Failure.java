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

/** What an exception is in the words of {@code error.type}; those of the run record's outcomes where it has them. */
final class Failure {
    static final String CANCELLED = "cancelled";

    /** The application, or the client for it, let go of a response before its end. */
    static final String ABANDONED = "abandoned";

    static final String CONNECT_FAILED = "connect_failed";

    private static final String POOL_CLOSED = "pool_closed";
    private static final String UNKNOWN = "unknown";

    private Failure() {}

    /** A TLS failure is of that phase, though the call that threw it also connects. */
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
        // Waiters of a pool that closes are cancelled, and who comes after is told that it is in no state to lease.
        boolean isClosed = hasCause(thrown, IllegalStateException.class) || hasCause(thrown, CancellationException.class);
        return isClosed ? POOL_CLOSED : isCancel(thrown) ? CANCELLED : UNKNOWN;
    }

    private static String ofConnect(Throwable thrown) {
        if (hasCause(thrown, UnknownHostException.class)) {
            return "resolve_failed";
        }
        // Both kinds of client make a refusal this one, and a timeout another.
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
        // By itself it is the reader of a stream of bodies who wants no more; a kind of it is the server's reset in HTTP/2.
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

    /** Of an interrupted operation there is this one alone; a timeout is one of its kinds. */
    private static boolean isCancel(Throwable thrown) {
        return hasCause(thrown, CancellationException.class) || hasCause(thrown, InterruptedIOException.class);
    }

    /** By another thread, or with the pool. The JDK has no type for it; this is the message of its sockets since 1.4. */
    private static boolean isClosedHere(Throwable thrown) {
        return thrown instanceof SocketException && "Socket closed".equals(thrown.getMessage());
    }

    /** Bounded: a chain of causes may be a ring. */
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
