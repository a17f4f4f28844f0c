/**
 * Durations into histograms, from inside an application.
 *
 * <p>Start with {@code Recorder}.
 */
package dev.parallax.recorder;
