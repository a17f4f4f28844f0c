package dev.parallax.vertx;

import dev.parallax.recorder.Counter;
import dev.parallax.recorder.Recorder;
import dev.parallax.recorder.UpDownCounter;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** A pool of workers or connections: the wait for one apart from its use. */
public final class Pool {
    private static final String DOMAIN = "pool";

    private final Recorder waits;
    private final UpDownCounter pending;
    private final Recorder uses;
    private final UpDownCounter inUse;
    private final Counter completed;

    private Pool(Domain domain, Map<Label, String> labels, int size) {
        waits = domain.durations("queue.time", "Time spent in queue before being processed", labels);
        pending = domain.upDownCounter("queue.pending", "Number of pending elements in queue", labels);
        uses = domain.durations("usage", "Time using a resource", labels);
        inUse = domain.upDownCounter("in.use", "Number of resources used", labels);
        completed = domain.counter("completed", "Number of elements done with the resource", labels);
        domain.gauge(
                "ratio",
                "Pool usage ratio, only present if maximum pool size could be determined",
                labels,
                () -> size > 0 ? (double) inUse.current() / size : Double.NaN);
    }

    /** All pools of one application. Two of the same labels are one, of the size of the first. */
    public static final class Pools {
        private final Domain domain;
        private final Map<Map<Label, String>, Pool> pools = new ConcurrentHashMap<>();

        /**
         * Without a pool.
         *
         * @param options as of all
         */
        public Pools(SeriesOptions options) {
            domain = new Domain(options, DOMAIN);
        }

        /**
         * A pool.
         *
         * @param labels its type and name; those that are off are left out
         * @param isLabelled whether they are there although they are off
         * @param size how many it has; 0 or less where that is not known
         * @return the same for the same labels
         */
        public Pool pool(Map<Label, String> labels, boolean isLabelled, int size) {
            Map<Label, String> on = isLabelled ? Map.copyOf(labels) : Exchanges.on(domain, labels);
            return pools.computeIfAbsent(on, all -> new Pool(domain, all, size));
        }
    }

    /**
     * One waits.
     *
     * @return since when, of {@link System#nanoTime()}
     */
    public Long waits() {
        pending.increment();
        return System.nanoTime();
    }

    /**
     * One waits no more, whether it was served or not.
     *
     * @param sinceNs that {@link #waits()} returned
     */
    public void waitsNoMore(Long sinceNs) {
        pending.decrement();
        waits.recordSince(sinceNs);
    }

    /**
     * One is used.
     *
     * @return since when, of {@link System#nanoTime()}
     */
    public Long uses() {
        inUse.increment();
        return System.nanoTime();
    }

    /**
     * It is used no more.
     *
     * @param sinceNs that {@link #uses()} returned
     */
    public void usesNoMore(Long sinceNs) {
        inUse.decrement();
        uses.recordSince(sinceNs);
        completed.increment();
    }
}
