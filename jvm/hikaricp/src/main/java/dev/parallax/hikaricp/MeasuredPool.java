package dev.parallax.hikaricp;

import com.zaxxer.hikari.HikariDataSource;
import com.zaxxer.hikari.metrics.MetricsTrackerFactory;
import java.sql.Connection;
import java.sql.SQLException;

/**
 * Measures a pool that is already running, where a {@link MeasuredDataSource} cannot be used. Only borrowers that use
 * {@link #getConnection()} of this object are measured.
 *
 * <p>Creation time is not available and test time is part of the wait, since the driver is out of reach. If the
 * application has its own tracker or registry, it stays the only one; the wait is then the whole time {@link
 * #getConnection()} took, and timeouts are counted in {@link PoolMetrics#failures()}.
 */
public final class MeasuredPool {
    private final HikariDataSource pool;
    private final PoolMetrics metrics;

    /** Null if the application has its own. */
    private final Tracker tracker;

    /**
     * Starts to measure a pool.
     *
     * @param pool running already, or started by its first connection
     */
    public MeasuredPool(HikariDataSource pool) {
        this.pool = pool;
        metrics = new PoolMetrics(pool::getHikariPoolMXBean);
        boolean isFree = pool.getMetricsTrackerFactory() == null && pool.getMetricRegistry() == null;
        tracker = isFree ? new Tracker(metrics, null, LentConnection::markReturned) : null;
        if (isFree) {
            pool.setMetricsTrackerFactory(tracker);
        }
    }

    /**
     * What is measured.
     *
     * @return always the same object
     */
    public PoolMetrics metrics() {
        return metrics;
    }

    /**
     * Borrows a connection; call it in place of the pool's method.
     *
     * @return a connection to be closed by the caller
     * @throws SQLException the pool's own
     */
    public Connection getConnection() throws SQLException {
        boolean hasStarted = pool.getHikariPoolMXBean() != null;
        boolean isSuspendable = tracker != null && hasStarted && pool.isAllowPoolSuspension();
        return Borrow.measured(metrics, isSuspendable, () -> true, pool::getConnection, pool::isClosed);
    }

    /**
     * Evicts a connection; call it in place of the pool's method.
     *
     * @param connection returned by {@link #getConnection()} or by the pool itself
     */
    public void evictConnection(Connection connection) {
        if (connection instanceof LentConnection lent) {
            pool.evictConnection(lent.delegate);
            lent.end();
        } else {
            pool.evictConnection(connection);
        }
    }

    /**
     * The application's tracker factory; call it in place of the pool's method.
     *
     * @return the application's, not ours; null if there is none
     */
    public MetricsTrackerFactory getMetricsTrackerFactory() {
        return tracker == null ? pool.getMetricsTrackerFactory() : tracker.factory();
    }

    /**
     * Sets a tracker factory; call it in place of the pool's method, whose only slot is taken.
     *
     * @param factory the application's; receives everything it would receive from the pool
     */
    public void setMetricsTrackerFactory(MetricsTrackerFactory factory) {
        if (tracker == null) {
            pool.setMetricsTrackerFactory(factory);
        } else if (tracker.factory() != null) {
            throw new IllegalStateException("MetricsTrackerFactory can only be set one time");
        } else {
            tracker.setFactory(factory);
        }
    }

    /**
     * Sets a registry; call it in place of the pool's method.
     *
     * @param registry of Micrometer or Dropwizard
     */
    public void setMetricRegistry(Object registry) {
        if (tracker == null) {
            pool.setMetricRegistry(registry);
        } else {
            setMetricsTrackerFactory(MeasuredDataSource.factoryOf(registry));
        }
    }
}
