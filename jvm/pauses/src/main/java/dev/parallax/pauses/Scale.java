package dev.parallax.pauses;

/**
 * The buckets in which a histogram counts durations, in nanoseconds, without gaps and in rising order.
 * Bucket {@code i} holds what is at least {@code lowerNs(i)} and below {@code lowerNs(i + 1)}.
 */
public interface Scale {

    /** {@return how many buckets there are} */
    int buckets();

    /**
     * {@return the smallest duration of a bucket, in nanoseconds}
     *
     * @param bucket from 0 up to {@link #buckets}, which included: that one is where the last bucket ends.
     */
    long lowerNs(int bucket);

    /**
     * {@return what means all durations of a bucket where they are added to others, in nanoseconds: its middle}
     *
     * @param bucket of the scale.
     */
    default double middleNs(final int bucket) {
        return (lowerNs(bucket) + lowerNs(bucket + 1) - 1) / 2.0;
    }
}
