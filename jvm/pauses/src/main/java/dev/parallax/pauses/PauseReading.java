package dev.parallax.pauses;

/**
 * A reading of a {@link PauseClock}: all pauses since the JVM started, or, as a difference of two, those between.
 * <p>
 * HotSpot updates its counters at three moments: {@code begun} when a safepoint begins, {@code syncNs} when the last
 * thread has stopped, {@code heldNs} when it is over, which is after the threads were resumed (JDK 17 and 25, {@code
 * safepoint.cpp}). A thread that has not stopped yet, or has just been resumed, can therefore read in the middle of a
 * pause: then that pause is counted but the rest of its time is not. The rest appears in the next reading, so sums over
 * successive readings lose nothing and count nothing twice.
 *
 * @param begun  safepoints begun.
 * @param syncNs time from the beginning of a safepoint until all threads had stopped, in nanoseconds.
 * @param heldNs time from then until the safepoint was over, in nanoseconds.
 */
public record PauseReading(long begun, long syncNs, long heldNs) {

    /** Zero: the difference if there was no pause. */
    public static final PauseReading NONE = new PauseReading(0, 0, 0);

    /** {@return time that was paused, reaching safepoints and being in them, in nanoseconds} */
    public long pausedNs() {
        return syncNs + heldNs;
    }

    /**
     * {@return what happened after an earlier reading}
     *
     * @param earlier of the same clock.
     */
    public PauseReading since(final PauseReading earlier) {
        return new PauseReading(begun - earlier.begun, syncNs - earlier.syncNs, heldNs - earlier.heldNs);
    }

    /**
     * {@return of a difference, whether a pause had begun and was not counted to its end at the later reading}
     * Certain if the earlier reading was not itself in a pause and at most one pause began; of several that began in
     * between, only the last can be incomplete, which the counters do not report.
     */
    public boolean unfinished() {
        return begun == 1 && heldNs == 0;
    }

    /**
     * {@return of a difference around an operation, how much of it was paused, in nanoseconds}
     * An operation that began while threads were being stopped is charged at most its own length.
     *
     * @param durationNs how long the operation took, in nanoseconds.
     */
    public long pausedWithin(final long durationNs) {
        return Math.min(pausedNs(), durationNs);
    }
}
