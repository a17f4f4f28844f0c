package dev.parallax.agent.report;

import dev.parallax.recorder.Durations;

/** Receives series. */
public interface Reader {
    /**
     * Receives durations.
     *
     * @param series they belong to
     * @param label distinguishes them within the series, the same at each reading; empty if there is only one
     * @param total all durations since the start of the {@linkplain Source#parts() part} that reports them; never
     *     decreases
     */
    void durations(Series series, String label, Durations total);

    /**
     * Receives a number.
     *
     * @param series it belongs to
     * @param label as for durations
     * @param value current value
     */
    void number(Series series, String label, long value);
}
