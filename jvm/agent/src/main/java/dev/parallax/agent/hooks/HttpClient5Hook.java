package dev.parallax.agent.hooks;

import dev.parallax.agent.instrument.Hook;
import dev.parallax.agent.instrument.Point;
import dev.parallax.agent.report.Reader;
import dev.parallax.agent.report.Series;
import dev.parallax.httpclient5.HttpClientMetrics;
import dev.parallax.httpclient5.ServerMetrics;
import dev.parallax.recorder.Durations;
import dev.parallax.recorder.LabelledRecorder;
import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.hc.client5.http.impl.async.HttpAsyncClientBuilder;
import org.apache.hc.client5.http.impl.classic.HttpClientBuilder;

/**
 * Installs {@link HttpClientMetrics} in each client that is built, unless the application, the starter, or this hook in
 * an earlier build of the same builder already did.
 */
public final class HttpClient5Hook implements Hook {
    /** Prefix of our own interceptor, whichever loader loaded it. */
    private static final String OURS = "dev.parallax.httpclient5.";

    private final HttpClientMetrics metrics = new HttpClientMetrics();
    private final Map<Object, Boolean> measured = Collections.synchronizedMap(new WeakHashMap<>());

    /** Called by the bridge. */
    public HttpClient5Hook() {}

    @Override
    public Object entered(Point point, Object self, Object argument) {
        switch (point) {
            case HTTP_CLASSIC_STEP, HTTP_ASYNC_STEP -> {
                if (argument != null && argument.getClass().getName().startsWith(OURS)) {
                    measured.put(self, true);
                }
            }
            case HTTP_CLASSIC -> {
                if (!measured.containsKey(self)) {
                    metrics.install((HttpClientBuilder) self);
                }
            }
            case HTTP_ASYNC -> {
                if (!measured.containsKey(self)) {
                    metrics.install((HttpAsyncClientBuilder) self);
                }
            }
            default -> throw new IllegalArgumentException(point + " is not a place of this hook");
        }
        return null;
    }

    @Override
    public void read(Reader reader) {
        for (ServerMetrics server : metrics.servers()) {
            String at = server.port() < 0 ? server.address() : server.address() + ":" + server.port();
            reader.durations(Series.HTTP_WAIT, at, server.waits().total());
            reader.durations(Series.HTTP_CREATE, at, server.connects().total());
            reader.durations(Series.HTTP_TLS, at, server.handshakes().total());
            reader.durations(Series.HTTP_HEAD, at, server.responseHeads().total());
            reader.durations(Series.HTTP_REQUEST, at, sum(server.requests()));
            reader.durations(Series.HTTP_FAILED, at, sum(server.failures()));
            reader.durations(Series.HTTP_CALL, at, sum(server.calls()));
            reader.durations(Series.HTTP_CALL_FAILED, at, server.failedCalls().total());
            reader.number(Series.HTTP_PENDING, at, server.pending());
            reader.number(Series.HTTP_ACTIVE, at, server.active());
        }
    }

    private static Durations sum(LabelledRecorder labelled) {
        Durations sum = labelled.other().total();
        for (LabelledRecorder.Row row : labelled.rows()) {
            sum = sum.plus(row.recorder().total());
        }
        return sum;
    }
}
