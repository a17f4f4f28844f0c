package dev.parallax.recorder;

import java.util.function.IntUnaryOperator;

/**
 * Counts in the buckets of an exponential histogram with base {@code 2^(2^-scale)}, in a series' unit: seconds for
 * durations.
 *
 * <p>{@code counts[i]} is the number of values above {@code base^(offset + i)} and at most {@code base^(offset + i +
 * 1)}. This is OpenTelemetry's numbering; in a Prometheus native histogram the same bucket has the index {@code offset
 * + i + 1}.
 *
 * @param scale OpenTelemetry's scale, Prometheus' schema
 * @param zeroCount number of zero values
 * @param offset number of the first bucket
 * @param counts from the first bucket to the last non-empty one
 */
public record ExponentialBuckets(int scale, long zeroCount, int offset, long[] counts) {
    /**
     * @param coarser number of scales to coarsen by
     * @param numbers maps a bucket of ours to its number at the finest scale
     */
    static ExponentialBuckets of(Tally tally, int coarser, IntUnaryOperator numbers) {
        int scale = Buckets.SCALE - coarser;
        int low = tally.first == 0 ? 1 : 0;
        int high = tally.counts.length - 1;
        long zeros = low == 1 && high >= 0 ? tally.counts[0] : 0;
        while (low <= high && tally.counts[low] == 0) {
            low++;
        }
        while (high >= low && tally.counts[high] == 0) {
            high--;
        }
        if (low > high) {
            return new ExponentialBuckets(scale, zeros, 0, new long[0]);
        }
        int offset = numbers.applyAsInt(tally.first + low) >> coarser;
        long[] counts = new long[(numbers.applyAsInt(tally.first + high) >> coarser) - offset + 1];
        int now = offset;
        long sum = 0;
        for (int i = low; i <= high; i++) {
            int bucket = numbers.applyAsInt(tally.first + i) >> coarser;
            if (bucket != now) {
                counts[now - offset] = sum;
                now = bucket;
                sum = 0;
            }
            sum += tally.counts[i];
        }
        counts[now - offset] = sum;
        return new ExponentialBuckets(scale, zeros, offset, counts);
    }

    /**
     * Merges buckets to a coarser scale.
     *
     * @param coarser a scale no finer than this one
     * @return new buckets, with each count in the bucket where it would have been recorded
     */
    public ExponentialBuckets toScale(int coarser) {
        int by = scale - coarser;
        if (by < 0) {
            throw new IllegalArgumentException("scale " + coarser + " is finer than " + scale);
        }
        if (counts.length == 0) {
            return new ExponentialBuckets(coarser, zeroCount, 0, counts);
        }
        long[] wider = new long[((offset + counts.length - 1) >> by) - (offset >> by) + 1];
        for (int i = 0; i < counts.length; i++) {
            wider[((offset + i) >> by) - (offset >> by)] += counts[i];
        }
        return new ExponentialBuckets(coarser, zeroCount, offset >> by, wider);
    }

    /** Adds buckets of the same scale. */
    ExponentialBuckets plus(ExponentialBuckets other) {
        if (counts.length == 0 || other.counts.length == 0) {
            ExponentialBuckets some = counts.length == 0 ? other : this;
            return new ExponentialBuckets(scale, zeroCount + other.zeroCount, some.offset, some.counts);
        }
        int from = Math.min(offset, other.offset);
        int to = Math.max(offset + counts.length, other.offset + other.counts.length);
        long[] sums = new long[to - from];
        System.arraycopy(counts, 0, sums, offset - from, counts.length);
        for (int i = 0; i < other.counts.length; i++) {
            sums[other.offset - from + i] += other.counts[i];
        }
        return new ExponentialBuckets(scale, zeroCount + other.zeroCount, from, sums);
    }
}
