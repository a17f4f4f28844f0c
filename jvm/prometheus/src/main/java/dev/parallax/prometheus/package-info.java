/**
 * Exports recorded series to Prometheus.
 *
 * <p>Start with {@code CatalogCollector}.
 */
package dev.parallax.prometheus;
