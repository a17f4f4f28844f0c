package dev.parallax.pauses;

import java.util.Arrays;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Collects the lengths of single pauses from a {@link PauseClock}, which shows their sum only.
 * <p>
 * A caller that comes by may {@link #poll}: a meter at its ticks, a recorder at its events. Two pauses between two polls are
 * reported as two of their mean length, and counted as {@link #merged}; the sum is exact however rare the polls are.
 * {@link PauseStream} reports each by itself, later.
 */
public final class PauseTally {
    /** A reader that never comes must not fill the memory; beyond this, lengths are added to the last. */
    private static final int MOST_KEPT = 1 << 16;

    private final PauseClock clock;
    private final ReentrantLock lock = new ReentrantLock();
    private volatile PauseReading seen;
    private long[] lengthsNs = new long[16];
    private int size;
    private long merged;

    /**
     * A tally of what comes after now.
     *
     * @param clock best one that is exact: a late one makes a late tally.
     */
    public PauseTally(final PauseClock clock) {
        this.clock = clock;
        this.seen = clock.read();
    }

    /** Looks at the clock. Costs a reading when no pause was; never waits: who comes second leaves it to the first. */
    public void poll() {
        if (clock.read().heldNs() != seen.heldNs() && lock.tryLock()) {
            try {
                look();
            } finally {
                lock.unlock();
            }
        }
    }

    /** {@return the lengths of the pauses since the last call, in nanoseconds, in their order} */
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

    /** {@return how many pauses were not distinguished from another one} */
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
