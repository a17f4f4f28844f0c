package dev.parallax.pauses;

import java.util.List;
import java.util.concurrent.locks.LockSupport;

/**
 * The last resort: a thread that sleeps for a millisecond and counts the time that it overslept as a pause. It cannot
 * tell which part of it was the time to safepoint, so all of it is {@code heldNs}.
 */
final class SampledPauseClock implements PauseClock, Runnable {
    private static final long SLEEP_NS = 1_000_000;
    /** A sleep ends some 0.1 ms late by itself; with twice the sleep, that and a short wait for a CPU are below it. */
    static final long LEAST_PAUSE_NS = 2_000_000;

    private final List<String> notUsed;
    private volatile PauseReading sum = PauseReading.NONE;
    private volatile boolean closed;

    private SampledPauseClock(final List<String> notUsed) {
        this.notUsed = List.copyOf(notUsed);
    }

    static SampledPauseClock start(final List<String> notUsed) {
        final SampledPauseClock clock = new SampledPauseClock(notUsed);
        final Thread thread = new Thread(clock, "parallax-pause-sampler");
        thread.setDaemon(true);
        thread.start();
        return clock;
    }

    @Override
    public void run() {
        long asleepAt = System.nanoTime();
        while (!closed) {
            LockSupport.parkNanos(SLEEP_NS);
            final long awakeAt = System.nanoTime();
            final long oversleptNs = awakeAt - asleepAt - SLEEP_NS;
            if (oversleptNs >= LEAST_PAUSE_NS) {
                sum = new PauseReading(sum.begun() + 1, 0, sum.heldNs() + oversleptNs);
            }
            asleepAt = awakeAt;
        }
    }

    @Override
    public PauseReading read() {
        return sum;
    }

    @Override
    public Way way() {
        return Way.SAMPLER;
    }

    @Override
    public List<String> notUsed() {
        return notUsed;
    }

    @Override
    public void close() {
        closed = true;
    }
}
