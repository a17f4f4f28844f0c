package dev.parallax.recorder;

import java.util.Arrays;

/**
 * Counts in the buckets of an exponential histogram of base {@code 2^(2^-scale)}, in seconds.
 *
 * <p>The count at {@code i} is of values above {@code base^(offset + i)} s and at most {@code base^(offset + i + 1)} s. This
 * is OpenTelemetry's numbering; in a Prometheus native histogram the same bucket has the number {@code offset + i + 1}.
 *
 * @param scale OpenTelemetry's scale, Prometheus' schema
 * @param zeroCount how many were zero
 * @param offset the number of the first bucket
 * @param counts from the first bucket to the last that is not empty
 */
public record ExponentialBuckets(int scale, long zeroCount, int offset, long[] counts) {
    static ExponentialBuckets of(Tally tally, int scale) {
        long zeros = 0;
        int offset = 0;
        long[] counts = {};
        for (int i = 0; i < tally.counts.length; i++) {
            int index = tally.first + i;
            if (tally.counts[i] == 0) {
                continue;
            }
            if (index == 0) {
                zeros = tally.counts[i];
                continue;
            }
            int bucket = Buckets.exponential(index, scale);
            if (counts.length == 0) {
                offset = bucket;
            }
            counts = Arrays.copyOf(counts, bucket - offset + 1);
            counts[bucket - offset] += tally.counts[i];
        }
        return new ExponentialBuckets(scale, zeros, offset, counts);
    }
}
