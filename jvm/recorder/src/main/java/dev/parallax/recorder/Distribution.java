package dev.parallax.recorder;

import java.util.OptionalDouble;

/** A distribution of measured values, in the unit of its series: seconds for durations. Immutable. */
public sealed interface Distribution permits Durations, Amounts {
    /**
     * Number of values.
     *
     * @return without unusable values
     */
    long count();

    /**
     * Sum of the values.
     *
     * @return in the series' unit, to the 53 bits of a double
     */
    double sum();

    /**
     * Smallest value.
     *
     * @return in the series' unit; empty if there are no values
     */
    OptionalDouble min();

    /**
     * Largest value.
     *
     * @return in the series' unit; empty if there are no values
     */
    OptionalDouble max();

    /**
     * The {@code rank}-th smallest value.
     *
     * @param rank counted from 1
     * @return in the series' unit, at most one part in 128 too high; empty if there are fewer values
     */
    OptionalDouble valueAtRank(long rank);

    /**
     * A quantile, if the sample is large enough for it: if a 95 % confidence interval between two of its values exists.
     * That takes 6 values for 0.5, 36 for 0.9, 368 for 0.99 and 3688 for 0.999.
     *
     * @param quantile from 0 to 1
     * @return in the series' unit, at most one part in 128 too high; empty if there are too few values
     */
    default OptionalDouble quantile(double quantile) {
        return valueAtRank(Rank.of(quantile, count()));
    }

    /**
     * Cumulative counts, as in a classic Prometheus histogram. A bound that is not a bucket boundary is rounded up by
     * at most one part in 128: all values equal to it or below are counted, and some just above it.
     *
     * @param bounds in the series' unit, ascending
     * @return for each bound, the number of values up to it
     */
    long[] countsUpTo(double... bounds);

    /**
     * The values added since an earlier total. If {@code earlier} contains values that this one does not, the series
     * was restarted, and all of this is returned.
     *
     * @param earlier total of the same series, or of a predecessor with the same name
     * @return the difference, in which no count is negative
     */
    Distribution since(Distribution earlier);

    /**
     * Converts to an exponential histogram in the series' unit.
     *
     * @param scale from -4 to {@link Durations#FINEST_SCALE}
     * @return a new histogram
     */
    ExponentialBuckets exponential(int scale);
}
