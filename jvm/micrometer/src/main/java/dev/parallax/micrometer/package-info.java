/**
 * Micrometer in both directions: {@code ParallaxMeterRegistry} for code that uses Micrometer, and {@code
 * CatalogMetrics} to export what is recorded to a registry of another kind.
 */
package dev.parallax.micrometer;
