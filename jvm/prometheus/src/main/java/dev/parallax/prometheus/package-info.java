/**
 * What is recorded, for Prometheus.
 *
 * <p>Start with {@code CatalogCollector}.
 */
package dev.parallax.prometheus;
