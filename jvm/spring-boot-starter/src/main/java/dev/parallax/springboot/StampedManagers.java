package dev.parallax.springboot;

import dev.parallax.httpclient5.HttpClientMetrics;
import java.lang.reflect.Field;
import org.apache.hc.client5.http.impl.io.PoolingHttpClientConnectionManagerBuilder;
import org.apache.hc.client5.http.impl.nio.PoolingAsyncClientConnectionManagerBuilder;
import org.apache.hc.client5.http.ssl.DefaultClientTlsStrategy;
import org.apache.hc.client5.http.ssl.TlsSocketStrategy;
import org.apache.hc.core5.http.nio.ssl.TlsStrategy;

/**
 * Reports handshakes from connects in managers that are about to be built. Their builders take a strategy for TLS but do not
 * tell which one they have, so that is read from the field; if there is none of that name any more, handshakes stay
 * within connects.
 */
final class StampedManagers {
    private StampedManagers() {}

    /** To be built next: a strategy that was not given is the usual one. */
    static void stamp(PoolingHttpClientConnectionManagerBuilder builder, HttpClientMetrics metrics) {
        if (!stampGiven(builder, metrics)) {
            builder.setTlsSocketStrategy(metrics.timeHandshakes(
                    (TlsSocketStrategy) usual(PoolingHttpClientConnectionManagerBuilder.class, builder)));
        }
    }

    /** To be built next: a strategy that was not given is the usual one. */
    static void stamp(PoolingAsyncClientConnectionManagerBuilder builder, HttpClientMetrics metrics) {
        if (!stampGiven(builder, metrics)) {
            builder.setTlsStrategy(
                    metrics.timeHandshakes((TlsStrategy) usual(PoolingAsyncClientConnectionManagerBuilder.class, builder)));
        }
    }

    /** May still be changed, so which strategy is the usual one is not known. False where none was given. */
    static boolean stampGiven(PoolingHttpClientConnectionManagerBuilder builder, HttpClientMetrics metrics) {
        Object given = read(PoolingHttpClientConnectionManagerBuilder.class, builder, "tlsSocketStrategy");
        if (given != null) {
            builder.setTlsSocketStrategy(metrics.timeHandshakes((TlsSocketStrategy) given));
        }
        return given != null;
    }

    /** May still be changed, so which strategy is the usual one is not known. False where none was given. */
    static boolean stampGiven(PoolingAsyncClientConnectionManagerBuilder builder, HttpClientMetrics metrics) {
        Object given = read(PoolingAsyncClientConnectionManagerBuilder.class, builder, "tlsStrategy");
        if (given != null) {
            builder.setTlsStrategy(metrics.timeHandshakes((TlsStrategy) given));
        }
        return given != null;
    }

    /** What a builder without a strategy takes. */
    private static DefaultClientTlsStrategy usual(Class<?> type, Object builder) {
        return Boolean.TRUE.equals(read(type, builder, "systemProperties"))
                ? DefaultClientTlsStrategy.createSystemDefault()
                : DefaultClientTlsStrategy.createDefault();
    }

    private static Object read(Class<?> type, Object from, String name) {
        try {
            Field field = type.getDeclaredField(name);
            field.setAccessible(true);
            return field.get(from);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("HttpClient has changed", e);
        }
    }
}
