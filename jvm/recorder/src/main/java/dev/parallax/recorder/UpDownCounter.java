package dev.parallax.recorder;

/**
 * How many there are of what comes and goes, as requests in progress.
 *
 * <p>Cost: as of a {@link Counter}.
 */
public final class UpDownCounter {
    private final Sum all = new Sum();

    /** At zero. */
    public UpDownCounter() {}

    /** One came. */
    public void increment() {
        all.add(1);
    }

    /** One went. */
    public void decrement() {
        all.add(-1);
    }

    /**
     * Several came, or went.
     *
     * @param amount below zero: so many went
     */
    public void add(long amount) {
        all.add(amount);
    }

    /**
     * This one, as the calling thread finds it.
     *
     * @return takes how many came, or below zero went
     */
    public Near near() {
        return all.near();
    }

    /**
     * How many there are. Never too few: what went is read first, so those that come or go meanwhile are counted, and where
     * each one comes before it goes this is never below zero.
     *
     * @return exact when nobody counts meanwhile
     */
    public long now() {
        long gone = all.went();
        return all.came() - gone;
    }
}
