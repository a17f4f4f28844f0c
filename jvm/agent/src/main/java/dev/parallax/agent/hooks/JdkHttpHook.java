package dev.parallax.agent.hooks;

import dev.parallax.agent.instrument.Hook;
import dev.parallax.agent.instrument.Point;
import dev.parallax.agent.report.Reader;
import dev.parallax.agent.report.Series;
import dev.parallax.recorder.LabelledRecorder;
import java.io.EOFException;
import java.net.ConnectException;
import java.net.SocketException;
import java.net.URI;
import java.net.UnknownHostException;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.nio.channels.UnresolvedAddressException;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import javax.net.ssl.SSLException;

/**
 * Times requests of the JDK's HTTP client by server, method, and status or error type. The client has no place where
 * connecting could be separated from the request, so there is one duration.
 */
public final class JdkHttpHook implements Hook {
    /** Maximum number of server, method and status combinations; the rest share one row. */
    private static final int ROWS_MAX = 200;

    private static final int CAUSES_MAX = 16;

    private final LabelledRecorder requests = labelled("http.response.status_code");
    private final LabelledRecorder failures = labelled("error.type");

    /** Called by the bridge. */
    public JdkHttpHook() {}

    /** A request that ends once: with the response, or earlier if its caller abandons it. */
    private record Sent(HttpRequest request, long begunNs, AtomicBoolean hasEnded) {}

    private static LabelledRecorder labelled(String last) {
        return new LabelledRecorder(ROWS_MAX, "server.address", "server.port", "http.request.method", last);
    }

    @Override
    public Object entered(Point point, Object self, Object argument) {
        return argument == null ? null : new Sent((HttpRequest) argument, System.nanoTime(), new AtomicBoolean());
    }

    /**
     * An asynchronous caller gets a future that completes after recording. Dependents of one future run in reverse
     * order of registration, so on the client's own future the application's work would be included in the time.
     */
    @Override
    public Object left(Point point, Object begun, Object returned, Throwable thrown) {
        Sent sent = (Sent) begun;
        if (returned instanceof CompletableFuture<?> future) {
            boolean isDone = future.isDone();
            CompletableFuture<?> recorded =
                    future.whenComplete((response, failure) -> endQuietly(sent, response, failure));
            if (isDone) {
                return null;
            }
            recorded.whenComplete((response, failure) -> endQuietly(sent, response, failure));
            return recorded;
        }
        endQuietly(sent, returned, thrown);
        return null;
    }

    private void endQuietly(Sent sent, Object response, Throwable thrown) {
        try {
            if (sent.hasEnded.compareAndSet(false, true)) {
                end(sent, response, thrown);
            }
        } catch (Throwable e) {
            // It would surface in the application's future. A request that cannot be recorded must not affect others.
        }
    }

    private void end(Sent sent, Object response, Throwable thrown) {
        LabelledRecorder of = thrown == null ? requests : failures;
        String last = thrown == null ? Integer.toString(((HttpResponse<?>) response).statusCode()) : type(thrown);
        URI uri = sent.request.uri();
        boolean isTls = "https".equalsIgnoreCase(uri.getScheme());
        int port = uri.getPort() >= 0 ? uri.getPort() : isTls ? 443 : 80;
        of.rowOf(new String[] {uri.getHost(), Integer.toString(port), sent.request.method(), last})
                .recordSince(sent.begunNs);
    }

    /** Uses the outcome names of the run record; specific types come first. */
    private static String type(Throwable thrown) {
        if (hasCause(thrown, HttpConnectTimeoutException.class)) {
            return "connect_timeout";
        }
        if (hasCause(thrown, HttpTimeoutException.class)) {
            return "request_timeout";
        }
        if (hasCause(thrown, UnresolvedAddressException.class) || hasCause(thrown, UnknownHostException.class)) {
            return "resolve_failed";
        }
        if (hasCause(thrown, ConnectException.class)) {
            return "connect_refused";
        }
        if (hasCause(thrown, SSLException.class)) {
            return "tls_failed";
        }
        if (hasCause(thrown, CancellationException.class) || hasCause(thrown, InterruptedException.class)) {
            return "cancelled";
        }
        if (hasCause(thrown, SocketException.class)) {
            return "reset";
        }
        return hasCause(thrown, EOFException.class) ? "closed_before_response" : "unknown";
    }

    /** Bounded, because a chain of causes may be circular. */
    private static boolean hasCause(Throwable thrown, Class<? extends Throwable> type) {
        Throwable cause = thrown;
        for (int depth = 0; cause != null && depth < CAUSES_MAX; depth++, cause = cause.getCause()) {
            if (type.isInstance(cause)) {
                return true;
            }
        }
        return false;
    }

    @Override
    public void read(Reader reader) {
        read(Series.JDK_REQUEST, requests, reader);
        read(Series.JDK_FAILED, failures, reader);
    }

    private static void read(Series series, LabelledRecorder labelled, Reader reader) {
        reader.durations(series, Series.OTHER, labelled.other().total());
        for (LabelledRecorder.Row row : labelled.rows()) {
            List<String> of = row.values();
            reader.durations(
                    series, of.get(0) + ":" + of.get(1) + " " + of.get(2) + " " + of.get(3), row.recorder().total());
        }
    }
}
