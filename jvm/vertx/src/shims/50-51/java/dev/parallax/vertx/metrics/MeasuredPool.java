package dev.parallax.vertx50;

import dev.parallax.vertx.Pool;
import io.vertx.core.spi.metrics.PoolMetrics;

/** A pool of workers, or of another kind. */
record MeasuredPool(Pool pool) implements PoolMetrics<Long, Long> {
    @Override
    public Long enqueue() {
        return pool.waits();
    }

    @Override
    public void dequeue(Long sinceNs) {
        pool.waitsNoMore(sinceNs);
    }

    @Override
    public Long begin() {
        return pool.uses();
    }

    @Override
    public void end(Long sinceNs) {
        pool.usesNoMore(sinceNs);
    }
}
