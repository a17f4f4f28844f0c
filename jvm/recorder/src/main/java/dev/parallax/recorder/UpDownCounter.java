package dev.parallax.recorder;

/**
 * A current number that goes up and down, such as requests in progress, counted by any number of threads.
 *
 * <p>Cost: that of a {@link Counter}.
 */
public final class UpDownCounter {
    private final Sum all = new Sum();

    /** Starts at zero. */
    public UpDownCounter() {}

    /** Adds one. */
    public void increment() {
        all.add(1);
    }

    /** Subtracts one. */
    public void decrement() {
        all.add(-1);
    }

    /**
     * Adds or subtracts several.
     *
     * @param amount negative amounts subtract
     */
    public void add(long amount) {
        all.add(amount);
    }

    /**
     * A faster handle for the calling thread.
     *
     * @return takes the amount to add; negative amounts subtract
     */
    public ThreadHandle threadHandle() {
        return all.threadHandle();
    }

    /**
     * The current number. Never too low: subtractions are read first, so with increments before decrements it is never
     * negative.
     *
     * @return exact if nobody counts in the meantime
     */
    public long current() {
        long removed = all.removed();
        return all.added() - removed;
    }
}
