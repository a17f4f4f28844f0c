package dev.parallax.recorder;

/** The kind of a series, which decides how its values may be combined. */
public enum Kind {
    /** Durations, in seconds. */
    DURATIONS,
    /** Amounts, in the series' unit. */
    AMOUNTS,
    /** A total that never decreases. */
    COUNTER,
    /** A current number that can be added up over labels and processes. */
    UP_DOWN,
    /** A current value that cannot be added up, such as a ratio or a temperature. */
    GAUGE;

    /**
     * Whether values are totals, so that the difference of two readings is meaningful.
     *
     * @return false for up-down counters and gauges
     */
    public boolean onlyGrows() {
        return this != UP_DOWN && this != GAUGE;
    }
}
