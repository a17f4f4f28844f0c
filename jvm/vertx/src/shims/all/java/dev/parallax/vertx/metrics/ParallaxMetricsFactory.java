package dev.parallax.vertx50;

import dev.parallax.recorder.Catalog;
import dev.parallax.vertx.Label;
import dev.parallax.vertx.SeriesOptions;
import io.vertx.core.VertxOptions;
import io.vertx.core.spi.VertxMetricsFactory;
import io.vertx.core.spi.metrics.VertxMetrics;

/**
 * Has Vert.x measured.
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
     * With the labels that vertx-micrometer-metrics has on.
     *
     * @param catalog in which all series are going to be
     */
    public ParallaxMetricsFactory(Catalog catalog) {
        this(new SeriesOptions(catalog, Label.usualOf50()));
    }

    /**
     * As the application wants it.
     *
     * @param options what is measured
     */
    public ParallaxMetricsFactory(SeriesOptions options) {
        this.options = options;
    }

    @Override
    public VertxMetrics metrics(VertxOptions vertx) {
        return new MeasuredVertx(options);
    }
}
