/**
 * Exports recorded series through OpenTelemetry's SDK.
 *
 * <p>Start with {@code CatalogProducer}.
 */
package dev.parallax.opentelemetry;
