package dev.parallax.vertx.metrics;

import dev.parallax.recorder.Catalog;
import dev.parallax.vertx.SeriesOptions;
import io.vertx.core.VertxOptions;
import io.vertx.core.spi.VertxMetricsFactory;
import io.vertx.core.spi.metrics.VertxMetrics;

/**
 * Makes Vert.x report its metrics to a catalog.
 *
 * <pre>{@code
 * Catalog catalog = new Catalog();
 * Vertx vertx = Vertx.builder()
 *         .with(new VertxOptions().setMetricsOptions(new MetricsOptions().setEnabled(true)))
 *         .withMetrics(new ParallaxMetricsFactory(catalog))
 *         .build();
 * }</pre>
 */
public final class ParallaxMetricsFactory implements VertxMetricsFactory {
    private final SeriesOptions options;

    /**
     * Measures everything, with the labels that vertx-micrometer-metrics enables by default in this version.
     *
     * @param catalog to register all series in
     */
    public ParallaxMetricsFactory(Catalog catalog) {
        this(new SeriesOptions(catalog, MeasuredVertx.DEFAULT_LABELS));
    }

    /**
     * Measures what the options select.
     *
     * @param options domains, labels and the catalog
     */
    public ParallaxMetricsFactory(SeriesOptions options) {
        this.options = options;
    }

    @Override
    public VertxMetrics metrics(VertxOptions vertx) {
        return new MeasuredVertx(options);
    }
}
