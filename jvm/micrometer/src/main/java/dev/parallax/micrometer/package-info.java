/**
 * Micrometer, both ways: {@code ParallaxMeterRegistry} under code that uses Micrometer, and {@code CatalogMetrics} to show
 * what is recorded in a registry of another kind.
 */
package dev.parallax.micrometer;
