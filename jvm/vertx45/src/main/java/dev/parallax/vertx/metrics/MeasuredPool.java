package dev.parallax.vertx45;

import dev.parallax.vertx.Pool;
import io.vertx.core.spi.metrics.PoolMetrics;

/** A pool of workers, or of another kind. */
record MeasuredPool(Pool pool) implements PoolMetrics<Long> {
    @Override
    public Long submitted() {
        return pool.waits();
    }

    @Override
    public void rejected(Long sinceNs) {
        pool.waitsNoMore(sinceNs);
    }

    @Override
    public Long begin(Long sinceNs) {
        pool.waitsNoMore(sinceNs);
        return pool.uses();
    }

    @Override
    public void end(Long sinceNs, boolean isSuccess) {
        pool.usesNoMore(sinceNs);
    }
}
