/**
 * Vert.x 5.0's metrics over the recorder: give a {@code ParallaxMetricsFactory} to {@code Vertx.builder().withMetrics}.
 */
package dev.parallax.vertx50;
