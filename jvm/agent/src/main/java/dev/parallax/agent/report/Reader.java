package dev.parallax.agent.report;

import dev.parallax.recorder.Durations;

/** Takes series. */
public interface Reader {
    /**
     * Takes durations.
     *
     * @param series what they are of
     * @param label what tells them from others of the series, the same at each reading; empty where there are no others
     * @param total all since the beginning of the {@linkplain Source#parts() part} that hands it over; it only grows
     */
    void durations(Series series, String label, Durations total);

    /**
     * Takes a number.
     *
     * @param series what it is of
     * @param label as above
     * @param value as of now
     */
    void number(Series series, String label, long value);
}
