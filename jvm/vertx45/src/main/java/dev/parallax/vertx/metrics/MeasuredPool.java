package dev.parallax.vertx.metrics;

import dev.parallax.vertx.Pool;
import io.vertx.core.spi.metrics.PoolMetrics;

/** A pool of workers, or of another kind. */
record MeasuredPool(Pool pool) implements PoolMetrics<Long> {
    @Override
    public Long submitted() {
        return pool.enqueue();
    }

    @Override
    public void rejected(Long sinceNs) {
        pool.dequeue(sinceNs);
    }

    @Override
    public Long begin(Long sinceNs) {
        pool.dequeue(sinceNs);
        return pool.acquire();
    }

    @Override
    public void end(Long sinceNs, boolean isSuccess) {
        pool.release(sinceNs);
    }
}
