package dev.parallax.springboot;

import dev.parallax.httpclient5.HttpClientMetrics;
import java.lang.reflect.Field;
import org.apache.hc.client5.http.impl.io.PoolingHttpClientConnectionManagerBuilder;
import org.apache.hc.client5.http.impl.nio.PoolingAsyncClientConnectionManagerBuilder;
import org.apache.hc.client5.http.ssl.DefaultClientTlsStrategy;
import org.apache.hc.client5.http.ssl.TlsSocketStrategy;
import org.apache.hc.core5.http.nio.ssl.TlsStrategy;

/**
 * Separates handshakes from connects in managers that are about to be built. Their builders accept a strategy for TLS
 * but do not expose it, so it is read from the field; if there is no field of that name any more, handshakes stay part
 * of connects.
 */
final class StampedManagers {
    private StampedManagers() {}

    /** The builder is about to be used: without a strategy, the default one applies. */
    static void stamp(PoolingHttpClientConnectionManagerBuilder builder, HttpClientMetrics metrics) {
        if (!stampGiven(builder, metrics)) {
            builder.setTlsSocketStrategy(metrics.timeHandshakes(
                    (TlsSocketStrategy) usual(PoolingHttpClientConnectionManagerBuilder.class, builder)));
        }
    }

    /** The builder is about to be used: without a strategy, the default one applies. */
    static void stamp(PoolingAsyncClientConnectionManagerBuilder builder, HttpClientMetrics metrics) {
        if (!stampGiven(builder, metrics)) {
            builder.setTlsStrategy(
                    metrics.timeHandshakes((TlsStrategy) usual(PoolingAsyncClientConnectionManagerBuilder.class, builder)));
        }
    }

    /** The builder may still be changed, so the default strategy is unknown. False if no strategy was set. */
    static boolean stampGiven(PoolingHttpClientConnectionManagerBuilder builder, HttpClientMetrics metrics) {
        Object given = read(PoolingHttpClientConnectionManagerBuilder.class, builder, "tlsSocketStrategy");
        if (given != null) {
            builder.setTlsSocketStrategy(metrics.timeHandshakes((TlsSocketStrategy) given));
        }
        return given != null;
    }

    /** The builder may still be changed, so the default strategy is unknown. False if no strategy was set. */
    static boolean stampGiven(PoolingAsyncClientConnectionManagerBuilder builder, HttpClientMetrics metrics) {
        Object given = read(PoolingAsyncClientConnectionManagerBuilder.class, builder, "tlsStrategy");
        if (given != null) {
            builder.setTlsStrategy(metrics.timeHandshakes((TlsStrategy) given));
        }
        return given != null;
    }

    /** The default of a builder without a strategy. */
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
