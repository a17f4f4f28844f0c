package dev.parallax.springboot;

import dev.parallax.httpclient5.HttpClientMetrics;
import org.apache.hc.client5.http.impl.async.CloseableHttpAsyncClient;
import org.apache.hc.client5.http.impl.async.HttpAsyncClientBuilder;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.HttpClientBuilder;
import org.apache.hc.client5.http.impl.io.PoolingHttpClientConnectionManagerBuilder;
import org.apache.hc.client5.http.impl.nio.PoolingAsyncClientConnectionManagerBuilder;
import org.springframework.beans.factory.ObjectProvider;

/** Clients, their builders and their managers' builders, if these are beans themselves. */
final class Clients extends MeasuringPostProcessor {
    private final ObjectProvider<HttpClientMetrics> metrics;

    Clients(ObjectProvider<HttpClientMetrics> metrics) {
        this.metrics = metrics;
    }

    @Override
    Object measured(Object bean, String name) {
        if (bean instanceof HttpClientBuilder builder) {
            metrics.getObject().install(builder);
        } else if (bean instanceof HttpAsyncClientBuilder builder) {
            metrics.getObject().install(builder);
        } else if (bean instanceof PoolingHttpClientConnectionManagerBuilder builder) {
            StampedManagers.stampGiven(builder, metrics.getObject());
        } else if (bean instanceof PoolingAsyncClientConnectionManagerBuilder builder) {
            StampedManagers.stampGiven(builder, metrics.getObject());
        } else if (bean instanceof CloseableHttpClient client) {
            install(metrics.getObject(), client, name);
        } else if (bean instanceof CloseableHttpAsyncClient client && !metrics.getObject().install(client)) {
            warn("bean '" + name + "' is not measured", client.getClass());
        }
        return bean;
    }

    static void install(HttpClientMetrics metrics, CloseableHttpClient client, String name) {
        if (!metrics.install(client)) {
            warn("bean '" + name + "' is not measured", client.getClass());
        }
    }
}
