package dev.parallax.recorder;

import java.util.concurrent.atomic.DoubleAdder;

/**
 * Records amounts of one kind, for example body sizes, from any number of threads. The counterpart of {@link Recorder}
 * for values that are not durations.
 *
 * <p>Amounts up to 3,600 are counted to a billionth, larger ones up to 3.6 × 10^12 to the nearest whole number; both to
 * one part in 128. Sums are exact.
 *
 * <p>Cost: the same as a {@link Recorder}; a fractional amount above 3,600 costs one more compare-and-set.
 */
public final class AmountRecorder {
    /** Up to this amount, a billionth of it is counted like a nanosecond of a second: the buckets are the same. */
    static final long SMALL = Buckets.LONGEST / Amounts.BILLION;

    private final Recorder small = new Recorder(SmallCell::new);
    private final Recorder large = new Recorder();
    private final DoubleAdder parts = new DoubleAdder();

    /** A recorder without a name; see {@link Catalog#amounts(Description)} for a named one. */
    public AmountRecorder() {}

    /**
     * Records an amount.
     *
     * @param amount in the unit of the series; negative amounts and those above 10^15 are {@link Amounts#unusable()}
     */
    public void record(long amount) {
        if (amount <= SMALL) {
            small.record(amount < 0 ? -1 : amount * Amounts.BILLION);
        } else {
            large.record(amount);
        }
    }

    /**
     * Records an amount that may have a fraction.
     *
     * @param amount in the unit of the series; NaN, negative amounts and those above 10^15 are {@link
     *     Amounts#unusable()}
     */
    public void record(double amount) {
        if (!(amount > SMALL)) {
            small.record(amount >= 0 ? Math.round(amount * Amounts.BILLION) : -1);
            return;
        }
        long whole = Math.round(amount);
        large.record(whole);
        if (whole != amount && whole <= Cell.MAX_PLAUSIBLE) {
            parts.add(amount - whole);
        }
    }

    /**
     * A faster handle for the calling thread.
     *
     * @return takes whole amounts; saves time for amounts up to 3,600
     */
    public ThreadHandle threadHandle() {
        return small.threadHandle();
    }

    /** Converts amounts to the billionths that a cell counts. */
    private final class SmallCell extends Cell {
        SmallCell(Recorder recorder, Thread owner) {
            super(recorder, owner);
        }

        @Override
        public void record(long amount) {
            if (owner == Thread.currentThread() && amount >= 0 && amount <= SMALL) {
                addRepeatable(amount * Amounts.BILLION);
            } else {
                AmountRecorder.this.record(amount);
            }
        }
    }

    /**
     * Everything recorded so far. Stops no writer and loses no record; a record made in the meantime is in this total or in
     * the next.
     *
     * @return count and sum of the same records, except for fractions of amounts above 3,600 recorded in the meantime
     */
    public Amounts total() {
        return new Amounts(small.total(), large.total(), parts.sum());
    }
}
