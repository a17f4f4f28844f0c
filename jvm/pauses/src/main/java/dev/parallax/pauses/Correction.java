package dev.parallax.pauses;

import java.util.Arrays;
import java.util.Optional;

/**
 * Estimates what an open load would have waited, from what was recorded and from the exact pauses.
 * <p>
 * In a pause of length P, callers that do not depend on whether this JVM runs continue to arrive at the rate r. Each
 * waits for the rest of the pause, evenly between 0 and P, and is then served like any other. So the pauses add
 * <pre>    a(x) dx = r · (number of pauses longer than x) dx</pre>
 * arrivals that wait x, r · P of them per pause, each followed by a duration drawn from those recorded. Operations that
 * were in progress when the pause began include it in their recorded duration: they arrived before it, are not among
 * the added ones, and stay unchanged.
 * <p>
 * It estimates the rate and the durations from the series' own recent past, never from what it added itself. Added
 * counts are fractions, so a rare series is corrected by its due share; nothing is rounded before the end. Called by
 * the reader of a series, once per interval; recording is not affected. Not thread-safe.
 * METHODOLOGY.md, "Pauses of a JVM", has the derivation.
 */
public final class Correction {
    /**
     * How far back the estimates reach: what was recorded counts for a factor e less after this much running time. Long
     * enough that a series of ten per second has a hundred to go by, short enough to follow a load that changes.
     */
    private static final double MEMORY_NS = 10e9;
    /** Pauses whose lengths differ by less than one part in this many are added as that many of their mean length. */
    private static final int ALIKE = 1_000;

    private final Scale scale;
    private final Starts starts;
    private final double[] recentCounts;
    private double recentEnded;
    private double recentBegun;
    private double recentNs;

    /**
     * A correction for one series.
     *
     * @param scale  the buckets of its counts.
     * @param starts what the start of its operations is.
     */
    public Correction(final Scale scale, final Starts starts) {
        this.scale = scale;
        this.starts = starts;
        this.recentCounts = new double[scale.buckets()];
    }

    /**
     * Corrects one interval. Call it for all intervals of the series, in order.
     * Costs some nanoseconds times buckets times different lengths of pauses.
     *
     * @param interval what was recorded in it, by the buckets of the scale.
     * @return the recorded and the corrected counts.
     */
    public Corrected correct(final Interval interval) {
        if (starts == Starts.INTENDED) {
            return new Corrected(scale, interval.counts().clone(), null, Optional.of(
                "starts are intended starts, so the recorded has every wait in it already: nothing to correct"));
        }
        remember(interval);
        final double[] change = new double[scale.buckets()];
        if (interval.pausesNs().length > 0 && recentNs > 0 && recentEnded > 0) {
            final double ratePerNs = recentBegun / recentNs;
            addWaits(change, interval, ratePerNs);
            if (starts == Starts.WHEN_TAKEN_UP) {
                withdraw(change, ratePerNs * interval.pausedNs());
            }
        }
        return new Corrected(scale, interval.counts().clone(), change, Optional.empty());
    }

    /** Time in pauses counts as time without arrivals, unless arrivals during pauses are among the recorded. */
    private void remember(final Interval interval) {
        final boolean askedInPauses = starts == Starts.WHEN_TAKEN_UP;
        final double ns = interval.lengthNs() - (askedInPauses ? 0 : interval.pausedNs());
        final double kept = Math.exp(-Math.max(0, ns) / MEMORY_NS);
        recentNs = recentNs * kept + ns;
        recentBegun = recentBegun * kept + interval.begun();
        recentEnded *= kept;
        for (int i = 0; i < recentCounts.length; i++) {
            final long count = interval.counts()[i];
            recentCounts[i] = recentCounts[i] * kept + count;
            recentEnded += count;
        }
    }

    private void addWaits(final double[] change, final Interval interval, final double ratePerNs) {
        final Sums sums = new Sums();
        final long[] sorted = interval.pausesNs().clone();
        Arrays.sort(sorted);
        int from = 0;
        while (from < sorted.length) {
            int to = from;
            double sumNs = 0;
            while (to < sorted.length && sorted[to] <= sorted[from] + sorted[from] / ALIKE) {
                sumNs += sorted[to];
                to++;
            }
            addWait(change, sums, sumNs / (to - from), ratePerNs * (to - from));
            from = to;
        }
    }

    /**
     * Adds, for pauses of one length, an even wait before each recent duration.
     * Of duration d, the part min(max(x - d, 0), P) / P of the arrivals ends before x; the sum over all d for each end
     * x of a bucket comes from running sums, so that it takes one pass and not one per duration. What exceeds the last
     * bucket is put into the last bucket.
     */
    private void addWait(final double[] change, final Sums sums, final double pauseNs, final double ratePerNs) {
        double below = 0;
        int upToNow = sums.first;
        int upToPauseAgo = sums.first;
        for (int bucket = sums.first; bucket < change.length && upToPauseAgo <= sums.last; bucket++) {
            final double x = scale.lowerNs(bucket + 1);
            while (upToNow <= sums.last && scale.middleNs(upToNow) < x) {
                upToNow++;
            }
            while (upToPauseAgo < upToNow && scale.middleNs(upToPauseAgo) + pauseNs <= x) {
                upToPauseAgo++;
            }
            final double answered = pauseNs * sums.weight[upToPauseAgo]
                + x * (sums.weight[upToNow] - sums.weight[upToPauseAgo])
                - (sums.moment[upToNow] - sums.moment[upToPauseAgo]);
            change[bucket] += ratePerNs * Math.max(0, answered - below);
            below = Math.max(below, answered);
        }
        change[change.length - 1] += ratePerNs * Math.max(0, pauseNs - below);
    }

    /** Removes the operations that arrived in pauses as they were recorded, without their wait. */
    private void withdraw(final double[] change, final double count) {
        for (int i = 0; i < change.length; i++) {
            change[i] -= count * recentCounts[i] / recentEnded;
        }
    }

    /** For each bucket, the recent durations below it: their share, and their share times their length. */
    private final class Sums {
        private final double[] weight = new double[recentCounts.length + 1];
        private final double[] moment = new double[recentCounts.length + 1];
        private int first = recentCounts.length;
        private int last;

        private Sums() {
            for (int i = 0; i < recentCounts.length; i++) {
                if (recentCounts[i] > 0) {
                    first = Math.min(first, i);
                    last = i;
                }
                final double share = recentCounts[i] / recentEnded;
                weight[i + 1] = weight[i] + share;
                moment[i + 1] = moment[i] + share * scale.middleNs(i);
            }
        }
    }
}
