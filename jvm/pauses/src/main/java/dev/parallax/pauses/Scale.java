package dev.parallax.pauses;

/**
 * The buckets in which a histogram counts durations, in nanoseconds, without gaps and in rising order.
 * Bucket {@code i} holds what is at least {@code lowerNs(i)} and below {@code lowerNs(i + 1)}.
 */
public interface Scale {

    /** How many buckets there are. */
    int buckets();

    /**
     * The smallest duration of a bucket, in nanoseconds.
     *
     * @param bucket from 0 up to {@link #buckets}, which included: that one is where the last bucket ends.
     */
    long lowerNs(int bucket);

    /** What stands for all durations of a bucket where they are added to others: its middle, in nanoseconds. */
    default double middleNs(final int bucket) {
        return (lowerNs(bucket) + lowerNs(bucket + 1) - 1) / 2.0;
    }
}
