/**
 * Measures Vert.x: pass a {@link dev.parallax.vertx.metrics.ParallaxMetricsFactory} to {@code Vertx.builder().withMetrics}.
 *
 * <p>Vert.x' metrics SPI has changed twice, so there is one jar per version: {@code parallax-vertx45} for 4.5, {@code
 * parallax-vertx50} for 5.0, {@code parallax-vertx51} for 5.1 and 5.2. All have this package; put one of them on the class
 * path.
 */
package dev.parallax.vertx.metrics;
