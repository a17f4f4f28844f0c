package dev.parallax.springboot;

import dev.parallax.httpclient5.HttpClientMetrics;
import java.util.function.Consumer;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.http.client.HttpComponentsClientHttpRequestFactoryBuilder;
import org.springframework.boot.http.client.reactive.HttpComponentsClientHttpConnectorBuilder;

/**
 * Spring Boot's builders for RestClient, RestTemplate and WebClient, its own and those that an application defines.
 * What is added here runs after the application's customizers, and so sees the manager that they chose.
 */
final class RequestFactoryBuilders extends MeasuringPostProcessor {
    private final ObjectProvider<HttpClientMetrics> metrics;

    RequestFactoryBuilders(ObjectProvider<HttpClientMetrics> metrics) {
        this.metrics = metrics;
    }

    @Override
    Object measured(Object bean, String name) {
        if (bean instanceof HttpComponentsClientHttpRequestFactoryBuilder builder) {
            HttpClientMetrics to = metrics.getObject();
            return builder.withConnectionManagerCustomizer(quiet(manager -> StampedManagers.stamp(manager, to)))
                    .withHttpClientCustomizer(quiet(to::install));
        }
        if (bean instanceof HttpComponentsClientHttpConnectorBuilder builder) {
            HttpClientMetrics to = metrics.getObject();
            return builder.withConnectionManagerCustomizer(quiet(manager -> StampedManagers.stamp(manager, to)))
                    .withHttpClientCustomizer(quiet(to::install));
        }
        return bean;
    }

    private static <B> Consumer<B> quiet(Consumer<B> step) {
        return builder -> {
            try {
                step.accept(builder);
            } catch (RuntimeException | LinkageError thrown) {
                warn("a client is not measured, or its handshakes are not", thrown);
            }
        };
    }
}
