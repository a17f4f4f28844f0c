package dev.parallax.recorder;

import java.util.OptionalDouble;
import java.util.OptionalLong;
import java.util.function.IntUnaryOperator;
import org.HdrHistogram.Histogram;

/**
 * How long things took: a histogram with what a histogram alone would lose. Immutable.
 *
 * <p>A duration is known to one part in 128; sum, least and longest of a {@link Recorder#total()} are exact.
 */
public final class Durations implements Distribution {
    /** None. */
    public static final Durations NONE = new Durations(new Tally());

    /** The finest scale of {@link #exponential(int)}. */
    public static final int FINEST_SCALE = Buckets.SCALE;

    private final Tally tally;

    /** The caller gives {@code tally} away. */
    Durations(Tally tally) {
        this.tally = tally;
    }

    /**
     * How many there are.
     *
     * @return without those that are {@link #unusable()}
     */
    @Override
    public long count() {
        return tally.count;
    }

    /**
     * The exact sum, in nanoseconds.
     *
     * @return {@link Long#MAX_VALUE} for a sum above that, which is 292 years
     */
    public long sumNs() {
        return tally.sumHigh != 0 || tally.sumLow < 0 ? Long.MAX_VALUE : tally.sumLow;
    }

    /**
     * The sum without its bound of 292 years.
     *
     * @return seconds, to the 53 bits of a double
     */
    public double sumSeconds() {
        // By 32 bits at a time, for the quotient of two doubles is not always the whole number that it should be.
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
     * The least, in nanoseconds.
     *
     * @return empty where there is none. Of an interval it is exact where it is the least so far, and else the lower
     *     bound of its bucket.
     */
    public OptionalLong minNs() {
        return count() == 0 ? OptionalLong.empty() : OptionalLong.of(tally.min);
    }

    /**
     * The longest, in nanoseconds.
     *
     * @return empty where there is none. Of an interval it is exact where it is the longest so far, and else the upper
     *     bound of its bucket; an hour stands there for what was longer.
     */
    public OptionalLong maxNs() {
        return count() == 0 ? OptionalLong.empty() : OptionalLong.of(tally.max);
    }

    /**
     * How many were longer than an hour. They are counted as an hour; sum and longest are of their true length.
     *
     * @return a part of {@link #count()}
     */
    public long outOfRange() {
        return tally.outOfRange;
    }

    /**
     * How many were no duration: below zero, as when a clock was set back or stamps were swapped, or above 13 days, as
     * when a start was never stamped.
     *
     * @return how many; they are nowhere else
     */
    public long unusable() {
        return tally.unusable;
    }

    /**
     * The {@code rank}-th smallest.
     *
     * @param rank counted from 1
     * @return the upper bound of its bucket, or the longest where that is less; empty where there are fewer
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
     * As {@link #quantile}.
     *
     * @param quantile which one, from 0 to 1
     * @return nanoseconds, as of {@link #atRank}; empty where there are too few to carry it
     */
    public OptionalLong quantileNs(double quantile) {
        return atRank(Rank.of(quantile, count()));
    }

    /**
     * These and those of {@code other}: counts add, nothing is averaged.
     *
     * @param other of any recorder
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
     * As an HdrHistogram of two significant digits, from 1 ns to an hour.
     *
     * @return a new one, with each count in the bucket in which it would have been recorded
     */
    public Histogram toHdrHistogram() {
        Histogram histogram = new Histogram(1, Buckets.LONGEST, 2);
        each((lowest, highest, n) -> histogram.recordValueWithCount(lowest, n));
        return histogram;
    }

    /**
     * As an exponential histogram: OpenTelemetry's, or with another number for the same buckets Prometheus' native one.
     *
     * @param scale at most {@link #FINEST_SCALE}, and at least -4
     * @return a new one, with each count in the bucket in which it would have been recorded
     */
    @Override
    public ExponentialBuckets exponential(int scale) {
        return exponentialBy(scale, Buckets::exponential);
    }

    /** With other buckets: {@code numbers} turns the number of one of ours into that at the finest scale. */
    ExponentialBuckets exponentialBy(int scale, IntUnaryOperator numbers) {
        if (scale > Buckets.SCALE || scale < -4) {
            throw new IllegalArgumentException("scale " + scale + " is not from -4 to " + Buckets.SCALE);
        }
        return ExponentialBuckets.of(tally, Buckets.SCALE - scale, numbers);
    }

    /** As {@link #countsUpTo}. */
    long[] countsUpToNs(long... boundsNs) {
        long[] counts = new long[boundsNs.length];
        long seen = 0;
        int at = 0;
        for (int n = 0; n < boundsNs.length; n++) {
            // All buckets up to the one that the bound lies in.
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
     * Hands over all buckets that are not empty, the shortest first.
     *
     * @param visitor is called for each
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
     * How many buckets there are, of any durations.
     *
     * @return always the same
     */
    public static int buckets() {
        return Buckets.COUNT;
    }

    /**
     * The least value of a bucket.
     *
     * @param bucket from 0 up to {@link #buckets()}, which included: that one is where the last bucket ends
     * @return nanoseconds; that of the next one where no whole number lies in it
     */
    public static long lowestNs(int bucket) {
        return Buckets.lowest(bucket);
    }

    /**
     * All buckets, the empty ones too.
     *
     * @return a new array of {@link #buckets()} counts
     */
    public long[] counts() {
        long[] counts = new long[Buckets.COUNT];
        System.arraycopy(tally.counts, 0, counts, tally.first, tally.counts.length);
        return counts;
    }

    /** Takes buckets. */
    @FunctionalInterface
    public interface Visitor {
        /**
         * Takes one.
         *
         * @param lowestNs the least value that it holds
         * @param highestNs the largest one
         * @param count how many there are, above zero
         */
        void bucket(long lowestNs, long highestNs, long count);
    }
}
