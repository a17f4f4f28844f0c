package dev.parallax.pauses;

import java.util.Arrays;
import java.util.Random;
import java.util.SplittableRandom;

/**
 * A simulated service and its pauses: the true waits of an open load, and what a recorder inside sees. Time is
 * simulated, in nanoseconds; in a pause no work is done. Work takes a time drawn from one distribution, and nothing
 * queues, so that the difference between truth and record is due to the pauses alone.
 */
final class OpenLoad {
    /** The law of the work: log-normal with a median of 1 ms, by this many of its values and evenly between them. */
    private static final int WORK_VALUES = 1 << 14;
    private static final double WORK_SIGMA = 0.5;
    private static final long[] WORK_NS = workLaw();
    private static final double MEAN_WORK_NS = Arrays.stream(WORK_NS).average().orElseThrow();

    /** How callers arrive. */
    enum Arrivals { POISSON, FIXED }

    private final double ratePerNs;
    private final Arrivals arrivals;
    /** Beginnings and ends of pauses, alternating, in wall time. */
    private final long[] edges;
    private final SplittableRandom random;

    OpenLoad(final double ratePerS, final Arrivals arrivals, final long[] edges, final SplittableRandom random) {
        this.ratePerNs = ratePerS / 1e9;
        this.arrivals = arrivals;
        this.edges = edges;
        this.random = random;
    }

    /**
     * Pauses with running time between them that is even between half and one and a half of its mean, so that the share
     * that is paused is near the wanted one also where pauses are few.
     *
     * @param share of the wall time that is paused.
     */
    static long[] pauses(final long untilNs, final double share, final Length length, final SplittableRandom random) {
        long[] edges = new long[16];
        int n = 0;
        double at = 0;
        while (true) {
            final long pauseNs = length.draw(random);
            at += (0.5 + random.nextDouble()) * length.meanNs() * (1 - share) / share;
            if (at + pauseNs >= untilNs) {
                return Arrays.copyOf(edges, n);
            }
            if (n + 2 > edges.length) {
                edges = Arrays.copyOf(edges, edges.length * 2);
            }
            edges[n++] = (long) at;
            at += pauseNs;
            edges[n++] = (long) at;
        }
    }

    /** The law of the pauses' lengths. */
    record Length(long leastNs, long mostNs) {
        long draw(final SplittableRandom random) {
            return Math.round(leastNs * Math.pow((double) mostNs / leastNs, random.nextDouble()));
        }

        double meanNs() {
            return leastNs == mostNs ? leastNs : (mostNs - leastNs) / Math.log((double) mostNs / leastNs);
        }
    }

    /** Takes one operation: when it began, by the recorder or in truth, and when it ended. */
    interface Taker {
        void take(long beginNs, long endNs);
    }

    /** The waits of callers that arrive whether or not the JVM runs. */
    void truth(final long untilNs, final Taker taker) {
        int edge = 0;
        for (double at = gap() * random.nextDouble(); at < untilNs; at += gap()) {
            final long now = (long) at;
            while (edge < edges.length && edges[edge + 1] <= now) {
                edge += 2;
            }
            final long served = edge < edges.length && edges[edge] <= now ? edges[edge + 1] : now;
            taker.take(now, end(served, edge));
        }
    }

    /**
     * What is recorded for callers that send a request whenever they run: in running time, which stands still in
     * pauses.
     */
    void recordedWhenFree(final long untilNs, final Taker taker) {
        int edge = 0;
        double paused = 0;
        for (double running = gap() * random.nextDouble(); running + paused < untilNs; running += gap()) {
            while (edge < edges.length && edges[edge] <= running + paused) {
                paused += edges[edge + 1] - edges[edge];
                edge += 2;
            }
            final long now = (long) (running + paused);
            taker.take(now, end(now, edge));
        }
    }

    /** What is recorded for external callers, each stamped when picked up: after the pause in which it arrived. */
    void recordedWhenTakenUp(final long untilNs, final Taker taker) {
        int edge = 0;
        for (double at = gap() * random.nextDouble(); at < untilNs; at += gap()) {
            final long now = (long) at;
            while (edge < edges.length && edges[edge + 1] <= now) {
                edge += 2;
            }
            final long taken = edge < edges.length && edges[edge] <= now ? edges[edge + 1] : now;
            taker.take(taken, end(taken, edge));
        }
    }

    /** What is recorded for callers that each work, think for an exponential time and repeat: a closed loop. */
    void recordedInALoop(final int callers, final long untilNs, final Taker taker) {
        final double thinkNs = callers / ratePerNs - MEAN_WORK_NS;
        for (int caller = 0; caller < callers; caller++) {
            int edge = 0;
            double paused = 0;
            double running = exponential(random) * thinkNs;
            while (running + paused < untilNs) {
                while (edge < edges.length && edges[edge] <= running + paused) {
                    paused += edges[edge + 1] - edges[edge];
                    edge += 2;
                }
                final long workNs = workNs();
                final long now = (long) (running + paused);
                taker.take(now, end(now, workNs, edge));
                running += workNs + exponential(random) * thinkNs;
            }
        }
    }

    /** When work begun at {@code beginNs}, outside of pauses, is done; pauses from {@code edge} on may be ahead. */
    private long end(final long beginNs, final int edge) {
        return end(beginNs, workNs(), edge);
    }

    private long end(final long beginNs, final long workNs, final int edge) {
        long doneNs = beginNs + workNs;
        for (int next = edge; next < edges.length && edges[next] < doneNs; next += 2) {
            if (edges[next] >= beginNs) {
                doneNs += edges[next + 1] - edges[next];
            }
        }
        return doneNs;
    }

    private long workNs() {
        final double at = random.nextDouble() * (WORK_VALUES - 1);
        final int below = (int) at;
        return Math.round(WORK_NS[below] + (at - below) * (WORK_NS[below + 1] - WORK_NS[below]));
    }

    private double gap() {
        return (arrivals == Arrivals.FIXED ? 1 : exponential(random)) / ratePerNs;
    }

    private static double exponential(final SplittableRandom random) {
        return -Math.log1p(-random.nextDouble());
    }

    private static long[] workLaw() {
        final Random random = new Random(1);
        final long[] values = new long[WORK_VALUES];
        for (int n = 0; n < values.length; n++) {
            values[n] = Math.round(1e6 * Math.exp(WORK_SIGMA * random.nextGaussian()));
        }
        Arrays.sort(values);
        return values;
    }
}
