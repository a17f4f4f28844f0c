package dev.parallax.pauses;

/** What the start of a recorded operation is, which determines how pauses are missing from what was recorded. */
public enum Starts {
    /**
     * The moment at which the caller was free and made a request: a loop, a job, a fixed number of threads. Nothing was
     * requested during a pause, so what an open load would have requested then is not among the recorded.
     */
    WHEN_FREE,
    /**
     * The moment at which this JVM picked up an external request: a server reading its socket. What arrived in a pause
     * waited outside, was picked up after it, and is among the recorded without that wait.
     */
    WHEN_TAKEN_UP,
    /**
     * The moment at which the operation should have begun.
     * Recorded durations already include the wait, so a correction would count it twice: there is none.
     */
    INTENDED
}
