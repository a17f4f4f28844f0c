/**
 * Records durations into histograms from inside an application.
 *
 * <p>Start with {@link dev.parallax.recorder.Recorder}, or with {@link dev.parallax.recorder.Catalog} to export named
 * series to other tools.
 */
package dev.parallax.recorder;
