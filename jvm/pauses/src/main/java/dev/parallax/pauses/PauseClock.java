package dev.parallax.pauses;

import java.lang.instrument.Instrumentation;
import java.util.ArrayList;
import java.util.List;

/**
 * Shows for how long this JVM has been stalled since it started, to the nanosecond if the JVM counts it.
 * <p>
 * The difference of two readings is the pause time between them: around an operation the part of it that was paused,
 * around an interval the time in which nothing could run. {@link #way()} tells where the numbers come from and what
 * they lack.
 */
public interface PauseClock extends AutoCloseable {

    /**
     * Reads the clock. Never blocks, never throws and allocates only the reading. From counters it costs four loads of
     * memory: a quarter of what {@link System#nanoTime} took in the same run, some 13 against 52 ns on a busy virtual
     * machine (JDK 17, 2026-11-22). A reading in the middle of a pause includes less of it than the next one: see
     * {@link PauseReading}.
     *
     * @return all pauses since the JVM started, or for the last two ways since the clock was opened.
     */
    PauseReading read();

    /** {@return where the readings come from} */
    Way way();

    /** {@return why each better way is not used, one line each; empty if this is the best} */
    List<String> notUsed();

    /** Ends threads and recordings that belong to this clock, if it has any. */
    @Override
    void close();

    /** Where readings come from, the best first: the order in which {@link #open} tries them. */
    enum Way {
        /** The JVM's counters, in the file that it shares with monitoring tools. */
        COUNTERS_FILE("stalls of single threads, which are no safepoints"),
        /** The same counters in the JVM's own memory, through {@code jdk.internal.perf}. */
        COUNTERS_ATTACHED("stalls of single threads, which are no safepoints"),
        /** The JVM's flight recorder. */
        FLIGHT_RECORDER("pauses of the last second or two, which come late; stalls of single threads"),
        /** A thread that sleeps and measures how late it wakes. */
        SAMPLER("pauses shorter than " + SampledPauseClock.LEAST_PAUSE_NS / 1_000_000
            + " ms; it cannot distinguish a pause from a thread that got no CPU");

        private final String lacks;

        Way(final String lacks) {
            this.lacks = lacks;
        }

        /** {@return what readings of this way do not include, for people} */
        public String lacks() {
            return lacks;
        }

        /** {@return whether readings are exact and immediate, without a thread} */
        public boolean isExact() {
            return this == COUNTERS_FILE || this == COUNTERS_ATTACHED;
        }
    }

    /**
     * Opens the best clock that this JVM allows. Never throws: the last way always works.
     *
     * @return a clock; its way tells how it measures.
     */
    static PauseClock open() {
        return open(null);
    }

    /**
     * Opens the best clock that this JVM allows, and may open {@code jdk.internal.perf} to this module for that, in
     * case {@code -XX:+PerfDisableSharedMem} hides the file.
     *
     * @param instrumentation of a Java agent; may be null, then {@code --add-exports
     *                        java.base/jdk.internal.perf=ALL-UNNAMED} does the same.
     * @return a clock; its way tells how it measures.
     */
    static PauseClock open(final Instrumentation instrumentation) {
        final List<String> notUsed = new ArrayList<>();
        for (final Way way : Way.values()) {
            try {
                return open(way, instrumentation, notUsed);
            } catch (final Unavailable e) {
                notUsed.add(way + ": " + e.getMessage());
            }
        }
        throw new AssertionError("the sampler is always available");
    }

    /**
     * Opens the clock of a given way.
     *
     * @param way             the one that is wanted.
     * @param instrumentation of a Java agent; may be null.
     * @return a clock of that way.
     * @throws Unavailable if this JVM does not allow it; the message contains the reason, and what to do.
     */
    static PauseClock open(final Way way, final Instrumentation instrumentation) throws Unavailable {
        return open(way, instrumentation, List.of());
    }

    private static PauseClock open(final Way way, final Instrumentation instrumentation, final List<String> notUsed)
        throws Unavailable {
        return switch (way) {
            case COUNTERS_FILE -> new CounterPauseClock(way, PerfMemory.mapFile(), notUsed);
            case COUNTERS_ATTACHED -> new CounterPauseClock(way, PerfMemory.attach(instrumentation), notUsed);
            case FLIGHT_RECORDER -> RecordedPauseClock.start(notUsed);
            case SAMPLER -> SampledPauseClock.start(notUsed);
        };
    }

    /** A way is not available in this JVM. */
    final class Unavailable extends Exception {
        private static final long serialVersionUID = 1;

        Unavailable(final String why) {
            super(why, null, false, false);
        }
    }
}
