package dev.parallax.pauses;

/**
 * The buckets in which a histogram counts durations, in nanoseconds, without gaps and in rising order.
 * Bucket {@code i} contains durations of at least {@code lowerNs(i)} and below {@code lowerNs(i + 1)}.
 */
public interface Scale {

    /** {@return how many buckets there are} */
    int buckets();

    /**
     * {@return the smallest duration of a bucket, in nanoseconds}
     *
     * @param bucket from 0 to {@link #buckets} inclusive: the last value is the end of the last bucket.
     */
    long lowerNs(int bucket);

    /**
     * {@return the duration that represents a bucket when it is added to others, in nanoseconds: its middle}
     *
     * @param bucket of the scale.
     */
    default double middleNs(final int bucket) {
        return (lowerNs(bucket) + lowerNs(bucket + 1) - 1) / 2.0;
    }
}
