package dev.parallax.suites;

import java.util.function.BooleanSupplier;

/** What other threads bring about. */
public final class Eventually {
    private static final long BOUND_NS = 10_000_000_000L;

    private Eventually() {}

    /**
     * Waits for it, 10 s at most.
     *
     * @param what it is, for who reads the failure
     * @param isSo whether it is
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
