package dev.parallax.pauses;

import java.util.Arrays;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Collects the lengths of single pauses from a {@link PauseClock}, which shows only their sum.
 * <p>
 * Any caller may {@link #poll}: a meter at its ticks, a recorder at its events. Two pauses between two polls are
 * reported as two of their mean length, and counted as {@link #merged}; the sum is exact however rare the polls are.
 * {@link PauseStream} reports each pause separately, but later.
 */
public final class PauseTally {
    /** A reader that never comes must not fill the memory; beyond this number, lengths are added to the last one. */
    private static final int MOST_KEPT = 1 << 16;

    private final PauseClock clock;
    private final ReentrantLock lock = new ReentrantLock();
    private volatile PauseReading seen;
    private long[] lengthsNs = new long[16];
    private int size;
    private long merged;

    /**
     * A tally of the pauses from now on.
     *
     * @param clock preferably an exact one: a late clock makes a late tally.
     */
    public PauseTally(final PauseClock clock) {
        this.clock = clock;
        this.seen = clock.read();
    }

    /** Reads the clock. Costs one reading without a pause; never waits: a second caller leaves it to the first. */
    public void poll() {
        if (clock.read().heldNs() != seen.heldNs() && lock.tryLock()) {
            try {
                look();
            } finally {
                lock.unlock();
            }
        }
    }

    /** {@return the lengths of the pauses since the last call, in nanoseconds, in order} */
    public long[] take() {
        lock.lock();
        try {
            look();
            final long[] taken = Arrays.copyOf(lengthsNs, size);
            size = 0;
            return taken;
        } finally {
            lock.unlock();
        }
    }

    /** {@return how many pauses could not be distinguished from another one} */
    public long merged() {
        lock.lock();
        try {
            return merged;
        } finally {
            lock.unlock();
        }
    }

    private void look() {
        final PauseReading now = clock.read();
        final PauseReading difference = now.since(seen);
        if (difference.heldNs() == 0) {
            return;
        }
        seen = now;
        final int count = (int) Math.max(1, Math.min(difference.begun(), MOST_KEPT));
        merged += count - 1;
        for (int n = 0; n < count; n++) {
            keep(difference.pausedNs() * (n + 1) / count - difference.pausedNs() * n / count);
        }
    }

    private void keep(final long lengthNs) {
        if (size == MOST_KEPT) {
            lengthsNs[size - 1] += lengthNs;
            merged++;
            return;
        }
        if (size == lengthsNs.length) {
            lengthsNs = Arrays.copyOf(lengthsNs, size * 2);
        }
        lengthsNs[size++] = lengthNs;
    }
}
