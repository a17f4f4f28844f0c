package dev.parallax.pauses;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.OptionalLong;

/** Reads the JVM's own safepoint counters, {@code sun.rt.*} in its performance data. */
final class CounterPauseClock implements PauseClock {
    private static final long TICKS_PER_SECOND = 1_000_000_000;
    /**
     * A retry needs a safepoint to begin within the last try, so more than one is rare, and this many indicate an
     * error.
     */
    private static final int TRIES = 8;

    private final Way way;
    private final List<String> notUsed;
    private final PerfData data;
    private final int begunAt;
    private final int syncAt;
    private final int heldAt;

    CounterPauseClock(final Way way, final ByteBuffer memory, final List<String> notUsed) throws Unavailable {
        this.way = way;
        this.notUsed = List.copyOf(notUsed);
        try {
            data = PerfData.of(memory);
            begunAt = data.offsetOf("sun.rt.safepoints");
            syncAt = data.offsetOf("sun.rt.safepointSyncTime");
            heldAt = data.offsetOf("sun.rt.safepointTime");
        } catch (final PerfData.NotPerfData e) {
            throw new Unavailable("the performance data of this JVM " + e.getMessage());
        }
        final OptionalLong frequency = data.find("sun.os.hrt.frequency");
        final boolean isNs = frequency.isPresent() ? frequency.getAsLong() == TICKS_PER_SECOND : isNsBySystem();
        if (!isNs) {
            throw new Unavailable("the performance data of this JVM does not count in nanoseconds");
        }
    }

    /**
     * The JVM publishes the length of a tick only once it is up, which is after an agent's {@code premain}. On these
     * two systems it is a nanosecond (JDK 17 to 25, {@code os::elapsed_frequency}).
     */
    private static boolean isNsBySystem() {
        final String system = System.getProperty("os.name", "");
        return system.startsWith("Linux") || system.startsWith("Mac");
    }

    /**
     * The JVM stores begun, sync, held in this order, so they are loaded in reverse: what is seen of a safepoint is
     * then a state that existed. A safepoint that begins between the loads, where this thread may be stopped for its
     * whole length, changes {@code begun}; the reading is then repeated.
     */
    @Override
    public PauseReading read() {
        long begunBefore = data.read(begunAt);
        for (int n = 0; ; n++) {
            final long heldNs = data.read(heldAt);
            final long syncNs = data.read(syncAt);
            final long begun = data.read(begunAt);
            if (begun == begunBefore || n == TRIES) {
                return new PauseReading(begun, syncNs, heldNs);
            }
            begunBefore = begun;
        }
    }

    @Override
    public Way way() {
        return way;
    }

    @Override
    public List<String> notUsed() {
        return notUsed;
    }

    /** Nothing to end: the memory belongs to the JVM. */
    @Override
    public void close() {
    }
}
