/**
 * Vert.x 5.1 and 5.2's metrics over the recorder: give a {@code ParallaxMetricsFactory} to {@code Vertx.builder().withMetrics}.
 */
package dev.parallax.vertx51;
