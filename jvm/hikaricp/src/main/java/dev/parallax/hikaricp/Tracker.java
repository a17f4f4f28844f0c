package dev.parallax.hikaricp;

import com.zaxxer.hikari.metrics.IMetricsTracker;
import com.zaxxer.hikari.metrics.MetricsTrackerFactory;
import com.zaxxer.hikari.metrics.PoolStats;
import java.util.function.BooleanSupplier;

/**
 * Takes the pool's only tracker slot: records when a connection is lent and returned, and passes everything on to the
 * application's tracker.
 */
final class Tracker implements MetricsTrackerFactory, IMetricsTracker {
    private static final IMetricsTracker NO_DELEGATE = new IMetricsTracker() {};

    private final PoolMetrics metrics;
    private final BooleanSupplier markReturned;
    private volatile MetricsTrackerFactory factory;
    private volatile IMetricsTracker delegate = NO_DELEGATE;
    private String poolName;
    private PoolStats stats;

    /**
     * @param factory the application's; null if there is none
     * @param markReturned marks the connection that this thread returns; false if it is not measured
     */
    Tracker(PoolMetrics metrics, MetricsTrackerFactory factory, BooleanSupplier markReturned) {
        this.metrics = metrics;
        this.factory = factory;
        this.markReturned = markReturned;
    }

    PoolMetrics metrics() {
        return metrics;
    }

    MetricsTrackerFactory factory() {
        return factory;
    }

    @Override
    public synchronized IMetricsTracker create(String poolName, PoolStats stats) {
        this.poolName = poolName;
        this.stats = stats;
        if (factory != null) {
            delegate = factory.create(poolName, stats);
        }
        return this;
    }

    /** Sets the application's factory after construction; null for none. */
    synchronized void setFactory(MetricsTrackerFactory factory) {
        this.factory = factory;
        // A pool that has not started yet asks for it when it does.
        delegate = factory == null || stats == null ? NO_DELEGATE : factory.create(poolName, stats);
    }

    @Override
    public void recordConnectionAcquiredNanos(long elapsedNs) {
        Borrow borrow = Borrow.current();
        if (borrow != null) {
            borrow.markAcquired(elapsedNs);
        }
        delegate.recordConnectionAcquiredNanos(elapsedNs);
    }

    @Override
    public void recordConnectionTimeout() {
        Borrow borrow = Borrow.current();
        if (borrow != null) {
            borrow.markTimedOut();
        }
        delegate.recordConnectionTimeout();
    }

    @Override
    public void recordConnectionUsageMillis(long ms) {
        if (!markReturned.getAsBoolean()) {
            metrics.countUnseenUse();
        }
        delegate.recordConnectionUsageMillis(ms);
    }

    @Override
    public void recordConnectionCreatedMillis(long ms) {
        delegate.recordConnectionCreatedMillis(ms);
    }

    @Override
    public void close() {
        delegate.close();
    }
}
