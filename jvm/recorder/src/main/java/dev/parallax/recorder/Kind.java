package dev.parallax.recorder;

/** What a series is of, and so what may be done with its values. */
public enum Kind {
    /** How long things took, in seconds. */
    DURATIONS,
    /** How large things were, in the series' unit. */
    AMOUNTS,
    /** What only grows. */
    COUNTER,
    /** How many there are now of what can be added up over labels and processes. */
    UP_DOWN,
    /** What is now, and cannot be added up: a share, a temperature. */
    GAUGE;

    /**
     * Whether it is of totals, so that what came between two readings can be told.
     *
     * @return not of what goes up and down, nor of gauges
     */
    public boolean onlyGrows() {
        return this != UP_DOWN && this != GAUGE;
    }
}
