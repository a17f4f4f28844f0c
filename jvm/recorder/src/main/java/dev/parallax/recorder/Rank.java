package dev.parallax.recorder;

/** Finds the rank of a quantile among sorted values, and whether the sample is large enough for it. */
final class Rank {
    /** Half of what a 95 % interval leaves out. */
    private static final double TAIL = 0.025;

    private Rank() {}

    /**
     * Returns the rank from 1, or 0 if the quantile has no 95 % confidence interval between two of {@code count}
     * values.
     */
    static long of(double quantile, long count) {
        boolean isCarried = Math.pow(quantile, count) <= TAIL && Math.pow(1 - quantile, count) <= TAIL;
        return isCarried ? (long) Math.ceil(quantile * count) : 0;
    }
}
