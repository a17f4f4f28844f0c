package dev.parallax.vertx;

import dev.parallax.recorder.Counter;
import dev.parallax.recorder.Recorder;
import dev.parallax.recorder.UpDownCounter;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Measures a pool of workers or connections: the wait for an element and its use. */
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

    /** All pools of one Vert.x instance. Pools with equal labels are one, with the size of the first. */
    public static final class Pools {
        private final Domain domain;
        private final Map<Map<Label, String>, Pool> pools = new ConcurrentHashMap<>();

        /**
         * Starts without pools.
         *
         * @param options what is measured
         */
        public Pools(SeriesOptions options) {
            domain = new Domain(options, DOMAIN);
        }

        /**
         * Returns a pool.
         *
         * @param labels type and name; disabled labels are left out
         * @param isLabelled whether to keep disabled labels too
         * @param size of the pool; 0 or less if unknown
         * @return the same object for equal labels
         */
        public Pool pool(Map<Label, String> labels, boolean isLabelled, int size) {
            Map<Label, String> on = isLabelled ? Map.copyOf(labels) : Exchanges.on(domain, labels);
            return pools.computeIfAbsent(on, all -> new Pool(domain, all, size));
        }
    }

    /**
     * A task starts to wait.
     *
     * @return when, from {@link System#nanoTime()}
     */
    public Long enqueue() {
        pending.increment();
        return System.nanoTime();
    }

    /**
     * A task stops waiting, served or not.
     *
     * @param sinceNs as returned by {@link #enqueue()}
     */
    public void dequeue(Long sinceNs) {
        pending.decrement();
        waits.recordSince(sinceNs);
    }

    /**
     * An element is in use.
     *
     * @return when, from {@link System#nanoTime()}
     */
    public Long acquire() {
        inUse.increment();
        return System.nanoTime();
    }

    /**
     * An element is free again.
     *
     * @param sinceNs as returned by {@link #acquire()}
     */
    public void release(Long sinceNs) {
        inUse.decrement();
        uses.recordSince(sinceNs);
        completed.increment();
    }
}
