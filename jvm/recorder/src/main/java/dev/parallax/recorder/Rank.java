package dev.parallax.recorder;

/** Which of some sorted values is a quantile, and whether they are enough to tell it. */
final class Rank {
    /** Half of what an interval of 95 % leaves out. */
    private static final double TAIL = 0.025;

    private Rank() {}

    /** From 1; 0, which no value has, where the quantile has no interval of 95 % between two of {@code count} values. */
    static long of(double quantile, long count) {
        boolean isCarried = Math.pow(quantile, count) <= TAIL && Math.pow(1 - quantile, count) <= TAIL;
        return isCarried ? (long) Math.ceil(quantile * count) : 0;
    }
}
