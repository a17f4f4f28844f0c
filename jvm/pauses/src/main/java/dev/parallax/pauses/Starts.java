package dev.parallax.pauses;

/** What the start of a recorded operation is, which decides how pauses are missing from what was recorded. */
public enum Starts {
    /**
     * The moment at which the caller was free and asked: a loop, a job, a fixed number of threads.
     * In a pause nobody asked, so what an open load would have asked then is not among the recorded.
     */
    WHEN_FREE,
    /**
     * The moment at which this JVM picked up what had come from outside: a server behind its socket.
     * What came in a pause waited outside, was picked up after it, and is among the recorded without that wait.
     */
    WHEN_TAKEN_UP,
    /**
     * The moment at which the operation should have begun.
     * Its wait is in the recorded already, so a correction would count it twice: there is none.
     */
    INTENDED
}
