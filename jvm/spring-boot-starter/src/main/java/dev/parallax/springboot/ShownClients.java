package dev.parallax.springboot;

import dev.parallax.httpclient5.HttpClientMetrics;
import dev.parallax.recorder.Catalog;
import dev.parallax.recorder.Registration;
import java.util.Map;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.SmartInitializingSingleton;

/** Registers the clients' metrics in the catalog once all beans exist. */
final class ShownClients implements SmartInitializingSingleton, AutoCloseable {
    private final ObjectProvider<HttpClientMetrics> metrics;
    private final Catalog catalog;
    private Registration shown = () -> {};

    ShownClients(ObjectProvider<HttpClientMetrics> metrics, Catalog catalog) {
        this.metrics = metrics;
        this.catalog = catalog;
    }

    @Override
    public void afterSingletonsInstantiated() {
        try {
            shown = metrics.getObject().bindTo(catalog, Map.of());
        } catch (RuntimeException e) {
            MeasuringPostProcessor.warn("HTTP clients are not shown", e);
        }
    }

    @Override
    public void close() {
        shown.close();
    }
}
