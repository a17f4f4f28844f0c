package dev.parallax.recorder;

import java.util.OptionalDouble;
import java.util.OptionalLong;
import java.util.function.IntUnaryOperator;
import org.HdrHistogram.Histogram;

/**
 * A distribution of durations: a histogram plus exact count, sum, minimum and maximum. Immutable.
 *
 * <p>Each duration is known to one part in 128; sum, minimum and maximum of a {@link Recorder#total()} are exact.
 */
public final class Durations implements Distribution {
    /** No durations. */
    public static final Durations NONE = new Durations(new Tally());

    /** The finest scale of {@link #exponential(int)}. */
    public static final int FINEST_SCALE = Buckets.SCALE;

    private final Tally tally;

    /** The caller gives up {@code tally}. */
    Durations(Tally tally) {
        this.tally = tally;
    }

    /**
     * Number of durations.
     *
     * @return without {@link #unusable()} values
     */
    @Override
    public long count() {
        return tally.count;
    }

    /**
     * The exact sum in nanoseconds.
     *
     * @return {@link Long#MAX_VALUE} if the sum exceeds it, at 292 years
     */
    public long sumNs() {
        return tally.sumHigh != 0 || tally.sumLow < 0 ? Long.MAX_VALUE : tally.sumLow;
    }

    /**
     * The sum without the limit of 292 years.
     *
     * @return seconds, to the 53 bits of a double
     */
    public double sumSeconds() {
        // 32 bits at a time, because the quotient of two doubles is not always the exact whole number.
        long whole = 0;
        long rest = 0;
        for (long digits : new long[] {tally.sumHigh >>> 32, tally.sumHigh, tally.sumLow >>> 32, tally.sumLow}) {
            long with = rest << 32 | digits & 0xffff_ffffL;
            whole = whole << 32 | with / 1_000_000_000;
            rest = with % 1_000_000_000;
        }
        return whole + rest / 1e9;
    }

    @Override
    public double sum() {
        long ns = sumNs();
        return ns == Long.MAX_VALUE ? sumSeconds() : seconds(ns);
    }

    @Override
    public OptionalDouble min() {
        return inSeconds(minNs());
    }

    @Override
    public OptionalDouble max() {
        return inSeconds(maxNs());
    }

    @Override
    public OptionalDouble valueAtRank(long rank) {
        return inSeconds(atRank(rank));
    }

    @Override
    public long[] countsUpTo(double... bounds) {
        long[] boundsNs = new long[bounds.length];
        for (int i = 0; i < bounds.length; i++) {
            boundsNs[i] = Math.round(bounds[i] * 1e9);
        }
        return countsUpToNs(boundsNs);
    }

    private static OptionalDouble inSeconds(OptionalLong ns) {
        return ns.isPresent() ? OptionalDouble.of(seconds(ns.getAsLong())) : OptionalDouble.empty();
    }

    private static double seconds(long ns) {
        return ns / 1_000_000_000 + ns % 1_000_000_000 / 1e9;
    }

    /**
     * The minimum in nanoseconds.
     *
     * @return empty if there are no durations. For an interval it is exact if it is the minimum of the whole total,
     *     otherwise the lower bound of its bucket.
     */
    public OptionalLong minNs() {
        return count() == 0 ? OptionalLong.empty() : OptionalLong.of(tally.min);
    }

    /**
     * The maximum in nanoseconds.
     *
     * @return empty if there are no durations. For an interval it is exact if it is the maximum of the whole total,
     *     otherwise the upper bound of its bucket, at most one hour.
     */
    public OptionalLong maxNs() {
        return count() == 0 ? OptionalLong.empty() : OptionalLong.of(tally.max);
    }

    /**
     * Number of durations longer than one hour. They are counted in the bucket of one hour; sum and maximum use the
     * true length.
     *
     * @return included in {@link #count()}
     */
    public long outOfRange() {
        return tally.outOfRange;
    }

    /**
     * Number of values that were not valid durations: negative, for example from swapped timestamps, or above 13 days,
     * for example from a start that was never stamped.
     *
     * @return their number; they are counted nowhere else
     */
    public long unusable() {
        return tally.unusable;
    }

    /**
     * The {@code rank}-th smallest duration in nanoseconds.
     *
     * @param rank counted from 1
     * @return the upper bound of its bucket, or the maximum if that is less; empty if there are fewer durations
     */
    public OptionalLong atRank(long rank) {
        long seen = 0;
        for (int i = 0; i < tally.counts.length && rank >= 1; i++) {
            seen += tally.counts[i];
            if (seen >= rank) {
                return OptionalLong.of(Math.min(Buckets.highest(tally.first + i), tally.max));
            }
        }
        return OptionalLong.empty();
    }

    /**
     * Like {@link #quantile}, in nanoseconds.
     *
     * @param quantile from 0 to 1
     * @return as {@link #atRank}; empty if there are too few durations
     */
    public OptionalLong quantileNs(double quantile) {
        return atRank(Rank.of(quantile, count()));
    }

    /**
     * Merges two distributions: counts are added, nothing is averaged.
     *
     * @param other from any recorder
     * @return the sum of both
     */
    public Durations plus(Durations other) {
        Tally sum = tally.copy();
        sum.add(other.tally, 1);
        return new Durations(sum);
    }

    @Override
    public Durations since(Distribution earlier) {
        return earlier instanceof Durations durations && hasAllOf(durations) ? interval(durations) : this;
    }

    boolean hasAllOf(Durations earlier) {
        return tally.hasAllOf(earlier.tally);
    }

    private Durations interval(Durations earlier) {
        Tally interval = new Tally();
        interval.add(tally, 1);
        interval.add(earlier.tally, -1);
        long[] counts = interval.counts;
        int low = 0;
        while (low < counts.length && counts[low] == 0) {
            low++;
        }
        int high = counts.length - 1;
        while (high > low && counts[high] == 0) {
            high--;
        }
        if (low == counts.length) {
            interval.min = Long.MAX_VALUE;
            interval.max = -1;
        } else {
            if (tally.min == earlier.tally.min) {
                interval.min = Math.max(tally.min, Buckets.lowest(interval.first + low));
            }
            if (tally.max == earlier.tally.max) {
                long bound = Math.min(Buckets.highest(interval.first + high), Buckets.LONGEST);
                interval.max = Math.min(tally.max, bound);
            }
        }
        return new Durations(interval);
    }

    /**
     * Converts to an HdrHistogram of two significant digits, from 1 ns to one hour.
     *
     * @return a new histogram, with each count in the bucket where it would have been recorded
     */
    public Histogram toHdrHistogram() {
        Histogram histogram = new Histogram(1, Buckets.LONGEST, 2);
        each((lowest, highest, n) -> histogram.recordValueWithCount(lowest, n));
        return histogram;
    }

    /**
     * Converts to an exponential histogram: OpenTelemetry's, or Prometheus' native one, which numbers the same buckets
     * differently.
     *
     * @param scale from -4 to {@link #FINEST_SCALE}
     * @return a new histogram, with each count in the bucket where it would have been recorded
     */
    @Override
    public ExponentialBuckets exponential(int scale) {
        return exponentialBy(scale, Buckets::exponential);
    }

    /** Converts to other buckets: {@code numbers} maps a bucket of ours to its number at the finest scale. */
    ExponentialBuckets exponentialBy(int scale, IntUnaryOperator numbers) {
        if (scale > Buckets.SCALE || scale < -4) {
            throw new IllegalArgumentException("scale " + scale + " is outside -4 to " + Buckets.SCALE);
        }
        return ExponentialBuckets.of(tally, Buckets.SCALE - scale, numbers);
    }

    /** Like {@link #countsUpTo}, in nanoseconds. */
    long[] countsUpToNs(long... boundsNs) {
        long[] counts = new long[boundsNs.length];
        long seen = 0;
        int at = 0;
        for (int n = 0; n < boundsNs.length; n++) {
            // All buckets up to the one that contains the bound.
            int last = boundsNs[n] < 0 ? -1 : Buckets.index(Math.min(boundsNs[n], Buckets.LONGEST));
            int end = Math.min(tally.counts.length, last + 1 - tally.first);
            while (at < end) {
                seen += tally.counts[at++];
            }
            counts[n] = seen;
        }
        return counts;
    }

    /**
     * Visits all non-empty buckets, shortest first.
     *
     * @param visitor called once per bucket
     */
    public void each(Visitor visitor) {
        for (int i = 0; i < tally.counts.length; i++) {
            if (tally.counts[i] != 0) {
                int index = tally.first + i;
                visitor.bucket(Buckets.lowest(index), Buckets.highest(index), tally.counts[i]);
            }
        }
    }

    /**
     * Number of buckets of any distribution of durations.
     *
     * @return a constant
     */
    public static int buckets() {
        return Buckets.COUNT;
    }

    /**
     * Smallest value of a bucket.
     *
     * @param bucket from 0 to {@link #buckets()} inclusive; the last is the end of the last bucket
     * @return nanoseconds; equal to that of the next bucket if no whole number is in this one
     */
    public static long lowestNs(int bucket) {
        return Buckets.lowest(bucket);
    }

    /**
     * Counts of all buckets, including empty ones.
     *
     * @return a new array of {@link #buckets()} counts
     */
    public long[] counts() {
        long[] counts = new long[Buckets.COUNT];
        System.arraycopy(tally.counts, 0, counts, tally.first, tally.counts.length);
        return counts;
    }

    /** Receives buckets. */
    @FunctionalInterface
    public interface Visitor {
        /**
         * Receives one bucket.
         *
         * @param lowestNs smallest value it holds
         * @param highestNs largest value it holds
         * @param count number of durations in it, above zero
         */
        void bucket(long lowestNs, long highestNs, long count);
    }
}
