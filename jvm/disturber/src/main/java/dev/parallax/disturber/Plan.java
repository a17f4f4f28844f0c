package dev.parallax.disturber;

import java.time.Duration;

/**
 * What a disturbance must do.
 *
 * @param mode kind of work
 * @param bytesPerSecond rate of bytes allocated, copied, of class metadata, or of stacks
 * @param share of the maximum heap that is held during that time, from 0 to 0.5
 * @param after when it begins
 * @param length how long it lasts
 */
public record Plan(Mode mode, long bytesPerSecond, double share, Duration after, Duration length) {
    /** The application needs the rest. */
    public static final double MOST_SHARE = 0.5;

    /**
     * Refuses invalid values.
     *
     * @param mode kind of work
     * @param bytesPerSecond above 0
     * @param share from 0 to {@link #MOST_SHARE}
     * @param after not negative
     * @param length above 0
     */
    public Plan {
        if (bytesPerSecond <= 0) {
            throw new IllegalArgumentException("a disturbance of no bytes a second disturbs nothing");
        }
        if (!(share >= 0 && share <= MOST_SHARE)) {
            throw new IllegalArgumentException("a disturbance holds from 0 to 50 % of the heap, not " + share * 100 + " %");
        }
        if (after.isNegative() || length.isNegative() || length.isZero()) {
            throw new IllegalArgumentException("a disturbance lasts for a while from now on");
        }
    }
}
