package dev.parallax.recorder;

import java.util.OptionalDouble;
import java.util.OptionalLong;

/**
 * How large amounts were: a histogram with what a histogram alone would lose. Immutable.
 *
 * <p>As an exponential histogram those up to 3,600 are without loss, as durations are. A larger one may lie in the bucket
 * below its own, by up to one part in 128; powers of two lie in their own.
 */
public final class Amounts implements Distribution {
    /** None. */
    public static final Amounts NONE = new Amounts(Durations.NONE, Durations.NONE, 0);

    static final long BILLION = 1_000_000_000;

    private final Durations small;
    private final Durations large;
    private final double parts;

    /**
     * @param small in billionths, as durations are in seconds
     * @param large whole ones
     * @param parts what the large ones are more, in sum
     */
    Amounts(Durations small, Durations large, double parts) {
        this.small = small;
        this.large = large;
        this.parts = parts;
    }

    @Override
    public long count() {
        return small.count() + large.count();
    }

    @Override
    public double sum() {
        return small.sum() + large.sumNs() + parts;
    }

    @Override
    public OptionalDouble min() {
        return small.count() > 0 ? small.min() : whole(large.minNs());
    }

    @Override
    public OptionalDouble max() {
        return large.count() > 0 ? whole(large.maxNs()) : small.max();
    }

    @Override
    public OptionalDouble valueAtRank(long rank) {
        if (rank <= small.count()) {
            return small.valueAtRank(rank);
        }
        return whole(large.atRank(rank - small.count()));
    }

    private static OptionalDouble whole(OptionalLong amount) {
        return amount.isPresent() ? OptionalDouble.of(amount.getAsLong()) : OptionalDouble.empty();
    }

    @Override
    public long[] countsUpTo(double... bounds) {
        long[] counts = small.countsUpTo(bounds);
        long[] whole = new long[bounds.length];
        for (int i = 0; i < bounds.length; i++) {
            whole[i] = (long) Math.floor(bounds[i]);
        }
        long[] more = large.countsUpToNs(whole);
        for (int i = 0; i < bounds.length; i++) {
            counts[i] += more[i];
        }
        return counts;
    }

    @Override
    public ExponentialBuckets exponential(int scale) {
        return small.exponential(scale).plus(large.exponentialBy(scale, Buckets::power));
    }

    /**
     * How many were no amount: below zero, no number, or above 10^15.
     *
     * @return how many; they are nowhere else
     */
    public long unusable() {
        return small.unusable() + large.unusable();
    }

    /**
     * These and those of {@code other}: counts add, nothing is averaged.
     *
     * @param other of any recorder
     * @return the sum of both
     */
    public Amounts plus(Amounts other) {
        return new Amounts(small.plus(other.small), large.plus(other.large), parts + other.parts);
    }

    @Override
    public Amounts since(Distribution earlier) {
        return earlier instanceof Amounts amounts && small.hasAllOf(amounts.small) && large.hasAllOf(amounts.large)
                ? new Amounts(small.since(amounts.small), large.since(amounts.large), parts - amounts.parts)
                : this;
    }
}
