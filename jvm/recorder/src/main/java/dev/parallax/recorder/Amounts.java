package dev.parallax.recorder;

import java.util.OptionalDouble;
import java.util.OptionalLong;

/**
 * A distribution of amounts: a histogram plus exact count, sum, minimum and maximum. Immutable.
 *
 * <p>Amounts up to 3,600 convert to an exponential histogram without loss, as durations do. A larger amount may end up
 * one bucket too low, by at most one part in 128; powers of two are exact.
 */
public final class Amounts implements Distribution {
    /** No amounts. */
    public static final Amounts NONE = new Amounts(Durations.NONE, Durations.NONE, 0);

    static final long BILLION = 1_000_000_000;

    private final Durations small;
    private final Durations large;
    private final double parts;

    /**
     * @param small amounts up to 3,600, in billionths
     * @param large whole amounts above that
     * @param parts sum of the fractions cut off from large amounts
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
     * Number of values that were not valid amounts: negative, NaN, or above 10^15.
     *
     * @return their number; they are counted nowhere else
     */
    public long unusable() {
        return small.unusable() + large.unusable();
    }

    /**
     * Merges two distributions: counts are added, nothing is averaged.
     *
     * @param other from any recorder
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
