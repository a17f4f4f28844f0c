package dev.parallax.pauses;

/**
 * A stall of one thread that is not a pause of the JVM.
 *
 * @param kind    why it was stalled.
 * @param thread  its name; empty when it has none.
 * @param beginNs when it began, on the clock of {@link System#nanoTime}.
 * @param totalNs how long it lasted, in nanoseconds.
 */
public record ThreadStall(Kind kind, String thread, long beginNs, long totalNs) {

    /** Why a thread was stalled. */
    public enum Kind {
        /** It needed memory that the collector had not freed yet (ZGC). */
        ALLOCATION,
        /** A virtual thread waited and could not leave its carrier. */
        PINNED
    }
}
