package dev.parallax.pauses;

import java.util.Optional;

/**
 * One pause of this JVM, with its cause.
 *
 * @param safepointId    the JVM's number of the safepoint.
 * @param beginNs        when it began, on the clock of {@link System#nanoTime}.
 * @param syncNs         from then until all threads had stopped, in nanoseconds.
 * @param totalNs        from its beginning until threads were let go, in nanoseconds.
 * @param operation      the JVM's operations that it was made for, as the JVM names them; empty when none was reported.
 * @param collection     the garbage collection that it belongs to, if any: its phase, collector and cause.
 * @param runningThreads how many threads ran and had to be stopped; empty where the JVM did not report.
 * @param lastToStop     the thread that took longest to stop, where the JVM reports: from JDK 25 on, while a recording
 *                       samples threads (JEP 518), and from 1 ms on.
 */
public record Pause(
    long safepointId,
    long beginNs,
    long syncNs,
    long totalNs,
    String operation,
    Optional<String> collection,
    Optional<Integer> runningThreads,
    Optional<String> lastToStop) {

    /** {@return when threads were let go, on the clock of {@link System#nanoTime}} */
    public long endNs() {
        return beginNs + totalNs;
    }
}
