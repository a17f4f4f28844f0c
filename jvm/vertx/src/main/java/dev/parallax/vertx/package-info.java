/**
 * Series of Vert.x with the names and labels of vertx-micrometer-metrics 4 and later, so that existing dashboards keep
 * working. One module per Vert.x version connects them to its metrics SPI; start with {@code ParallaxMetricsFactory} of
 * that module.
 *
 * <p>Not supported: tags computed from the request, the metric names of version 3, and the binders for the JVM and
 * Netty.
 */
package dev.parallax.vertx;
