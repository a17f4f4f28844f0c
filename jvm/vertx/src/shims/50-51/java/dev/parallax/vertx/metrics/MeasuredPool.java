package dev.parallax.vertx.metrics;

import dev.parallax.vertx.Pool;
import io.vertx.core.spi.metrics.PoolMetrics;

/** A pool of workers, or of another kind. */
record MeasuredPool(Pool pool) implements PoolMetrics<Long, Long> {
    @Override
    public Long enqueue() {
        return pool.enqueue();
    }

    @Override
    public void dequeue(Long sinceNs) {
        pool.dequeue(sinceNs);
    }

    @Override
    public Long begin() {
        return pool.acquire();
    }

    @Override
    public void end(Long sinceNs) {
        pool.release(sinceNs);
    }
}
