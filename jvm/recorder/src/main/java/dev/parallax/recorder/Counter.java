package dev.parallax.recorder;

import java.util.concurrent.atomic.DoubleAdder;
import java.util.concurrent.atomic.LongAdder;

/**
 * What only grows, counted by any number of threads.
 *
 * <p>Cost: one compare-and-set on a place that threads that meet there leave to each other, no allocation but when they do
 * so for the first time.
 */
public final class Counter {
    private final LongAdder whole = new LongAdder();
    private final DoubleAdder parts = new DoubleAdder();

    /** At zero. */
    public Counter() {}

    /** Counts one. */
    public void increment() {
        whole.increment();
    }

    /**
     * Counts several.
     *
     * @param amount what is below zero is ignored: this only grows
     */
    public void add(long amount) {
        if (amount > 0) {
            whole.add(amount);
        }
    }

    /**
     * Counts what need not be whole. Whole amounts add up exactly, parts to the 53 bits of a double.
     *
     * @param amount what is below zero, no number or without end is ignored
     */
    public void add(double amount) {
        long floor = (long) amount;
        if (floor == amount && floor != Long.MAX_VALUE) {
            add(floor);
        } else if (amount > 0 && amount < Double.POSITIVE_INFINITY) {
            parts.add(amount);
        }
    }

    /**
     * All so far. One that races with this is in it or in the next one; what one reader reads never goes back.
     *
     * @return exact up to 2^53 where only whole amounts were added
     */
    public double total() {
        return whole.sum() + parts.sum();
    }
}
