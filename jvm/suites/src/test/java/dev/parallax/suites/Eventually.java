package dev.parallax.suites;

import java.util.function.BooleanSupplier;

/** What other threads bring about. */
public final class Eventually {
    private static final long BOUND_NS = 10_000_000_000L;

    private Eventually() {}

    /**
     * Waits for a condition, at most 10 s.
     *
     * @param what the condition, for the message of a failure
     * @param isSo whether it holds
     */
    public static void until(String what, BooleanSupplier isSo) {
        long endNs = System.nanoTime() + BOUND_NS;
        while (!isSo.getAsBoolean()) {
            if (System.nanoTime() - endNs > 0) {
                throw new AssertionError("not within 10 s: " + what);
            }
            try {
                Thread.sleep(1);
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        }
    }
}
