/**
 * Vert.x 4.5's metrics over the recorder: give a {@code ParallaxMetricsFactory} to {@code Vertx.builder().withMetrics}.
 */
package dev.parallax.vertx45;
