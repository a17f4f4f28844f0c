package dev.parallax.hikaricp;

import com.zaxxer.hikari.metrics.IMetricsTracker;
import com.zaxxer.hikari.metrics.MetricsTrackerFactory;
import com.zaxxer.hikari.metrics.PoolStats;
import java.util.function.BooleanSupplier;

/** The pool's one place for a tracker: hears when a connection is lent and is back, and hands on to who was there. */
final class Tracker implements MetricsTrackerFactory, IMetricsTracker {
    private static final IMetricsTracker NOBODY = new IMetricsTracker() {};

    private final PoolMetrics metrics;
    private final BooleanSupplier isUseSeen;
    private volatile MetricsTrackerFactory factory;
    private volatile IMetricsTracker other = NOBODY;
    private String poolName;
    private PoolStats stats;

    /**
     * @param factory the application's own; null where there is none
     * @param isUseSeen whether the use that this thread ends is known
     */
    Tracker(PoolMetrics metrics, MetricsTrackerFactory factory, BooleanSupplier isUseSeen) {
        this.metrics = metrics;
        this.factory = factory;
        this.isUseSeen = isUseSeen;
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
            other = factory.create(poolName, stats);
        }
        return this;
    }

    /** One that comes later than this, or null for none. */
    synchronized void handTo(MetricsTrackerFactory factory) {
        this.factory = factory;
        // A pool that has not started asks for it then.
        other = factory == null || stats == null ? NOBODY : factory.create(poolName, stats);
    }

    @Override
    public void recordConnectionAcquiredNanos(long elapsedNs) {
        Borrow borrow = Borrow.now();
        if (borrow != null) {
            borrow.acquired(elapsedNs);
        }
        other.recordConnectionAcquiredNanos(elapsedNs);
    }

    @Override
    public void recordConnectionTimeout() {
        Borrow borrow = Borrow.now();
        if (borrow != null) {
            borrow.timedOut();
        }
        other.recordConnectionTimeout();
    }

    @Override
    public void recordConnectionUsageMillis(long ms) {
        if (!isUseSeen.getAsBoolean()) {
            metrics.countUnseenUse();
        }
        other.recordConnectionUsageMillis(ms);
    }

    @Override
    public void recordConnectionCreatedMillis(long ms) {
        other.recordConnectionCreatedMillis(ms);
    }

    @Override
    public void close() {
        other.close();
    }
}
