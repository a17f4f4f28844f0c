/**
 * What is recorded, for OpenTelemetry's SDK.
 *
 * <p>Start with {@code CatalogProducer}.
 */
package dev.parallax.opentelemetry;
