package dev.parallax.recorder;

import java.util.concurrent.atomic.DoubleAdder;

/**
 * Amounts of one kind, as the bytes of bodies, recorded by any number of threads. As a {@link Recorder} is for durations.
 *
 * <p>Amounts up to 3,600 are counted to a billionth, larger ones up to 3.6 10^12 to the nearest whole number; both to one
 * part in 128. Sums are of the amounts themselves.
 *
 * <p>Cost: as of a {@link Recorder}; a part beside a whole number above 3,600 costs one compare-and-set more.
 */
public final class AmountRecorder {
    /** Up to here a billionth of an amount is what a nanosecond is of a second: both have the same buckets. */
    static final long SMALL = Buckets.LONGEST / Amounts.BILLION;

    private final Recorder small = new Recorder(SmallCell::new);
    private final Recorder large = new Recorder();
    private final DoubleAdder parts = new DoubleAdder();

    /** Without a name: who makes it knows what it is of. */
    public AmountRecorder() {}

    /**
     * Records an amount.
     *
     * @param amount below zero it is {@link Amounts#unusable()}, and so it is above 10^15
     */
    public void record(long amount) {
        if (amount <= SMALL) {
            small.record(amount < 0 ? -1 : amount * Amounts.BILLION);
        } else {
            large.record(amount);
        }
    }

    /**
     * Records an amount that need not be whole.
     *
     * @param amount below zero or no number it is {@link Amounts#unusable()}, and so it is above 10^15
     */
    public void record(double amount) {
        if (!(amount > SMALL)) {
            small.record(amount >= 0 ? Math.round(amount * Amounts.BILLION) : -1);
            return;
        }
        long whole = Math.round(amount);
        large.record(whole);
        if (whole != amount && whole <= Cell.BELIEVABLE) {
            parts.add(amount - whole);
        }
    }

    /**
     * This one, as the calling thread finds it.
     *
     * @return takes whole amounts; up to 3,600 it is nearer
     */
    public Near near() {
        return small.near();
    }

    /** What is amounts to who records is billionths to the cell. */
    private final class SmallCell extends Cell {
        SmallCell(Recorder recorder, Thread owner) {
            super(recorder, owner);
        }

        @Override
        public void record(long amount) {
            if (owner == Thread.currentThread() && amount >= 0 && amount <= SMALL) {
                addOften(amount * Amounts.BILLION);
            } else {
                AmountRecorder.this.record(amount);
            }
        }
    }

    /**
     * All that was recorded so far. Stops no writer and loses no record; one that races with this is in it or in the next
     * one.
     *
     * @return count and sum of the very same records, but for parts of amounts above 3,600 that are recorded meanwhile
     */
    public Amounts total() {
        return new Amounts(small.total(), large.total(), parts.sum());
    }
}
