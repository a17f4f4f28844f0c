package dev.parallax.recorder;

import java.util.OptionalDouble;

/** What is known of many measured values, in the unit of their series: seconds for durations. Immutable. */
public sealed interface Distribution permits Durations, Amounts {
    /**
     * How many there are.
     *
     * @return without what could not be used
     */
    long count();

    /**
     * Their sum.
     *
     * @return in the series' unit, to the 53 bits of a double
     */
    double sum();

    /**
     * The least.
     *
     * @return in the series' unit; empty where there is none
     */
    OptionalDouble min();

    /**
     * The largest.
     *
     * @return in the series' unit; empty where there is none
     */
    OptionalDouble max();

    /**
     * The {@code rank}-th smallest.
     *
     * @param rank counted from 1
     * @return in the series' unit, at most one part in 128 too much; empty where there are fewer
     */
    OptionalDouble valueAtRank(long rank);

    /**
     * A quantile, where the values carry it: where there is an interval of 95 % for it between two of them. That takes 6
     * values for 0.5, 36 for 0.9, 368 for 0.99, and 3688 for 0.999.
     *
     * @param quantile which one, from 0 to 1
     * @return in the series' unit, at most one part in 128 too much; empty where the values are too few
     */
    default OptionalDouble quantile(double quantile) {
        return valueAtRank(Rank.of(quantile, count()));
    }

    /**
     * How many are up to each of some bounds. Where a bound is none of ours, it is taken as up to one part in 128 larger: all
     * values that are equal to it or below are counted, and some that are just above it.
     *
     * @param bounds in the series' unit, in rising order
     * @return for each bound the count up to it
     */
    long[] countsUpTo(double... bounds);

    /**
     * What came since {@code earlier}. Where that is no earlier total of this, for it has something that this has not, the
     * series began anew: then all of this came since.
     *
     * @param earlier a total of the same series, or of one that had its name
     * @return the interval between the two, in which nothing is below zero
     */
    Distribution since(Distribution earlier);

    /**
     * As an exponential histogram in the series' unit.
     *
     * @param scale at most {@link Durations#FINEST_SCALE}, and at least -4
     * @return a new one
     */
    ExponentialBuckets exponential(int scale);
}
