/**
 * Durations into histograms, from inside an application.
 *
 * <p>Start with {@code Recorder}. Where other tools are to see what is recorded, with {@code Catalog}.
 */
package dev.parallax.recorder;
