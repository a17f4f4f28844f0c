package dev.parallax.recorder;

import java.util.concurrent.atomic.LongAdder;

/**
 * How many there are of what comes and goes, as requests in progress.
 *
 * <p>Cost: as of a {@link Counter}.
 */
public final class UpDownCounter {
    private final LongAdder came = new LongAdder();
    private final LongAdder went = new LongAdder();

    /** At zero. */
    public UpDownCounter() {}

    /** One came. */
    public void increment() {
        came.increment();
    }

    /** One went. */
    public void decrement() {
        went.increment();
    }

    /**
     * Several came, or went.
     *
     * @param amount below zero: so many went
     */
    public void add(long amount) {
        if (amount >= 0) {
            came.add(amount);
        } else {
            went.add(-amount);
        }
    }

    /**
     * How many there are. Never too few: what went is read first, so those that come or go meanwhile are counted, and where
     * each one comes before it goes this is never below zero.
     *
     * @return exact when nobody counts meanwhile
     */
    public long now() {
        long gone = went.sum();
        return came.sum() - gone;
    }
}
