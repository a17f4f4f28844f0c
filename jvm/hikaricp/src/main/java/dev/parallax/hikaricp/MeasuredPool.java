package dev.parallax.hikaricp;

import com.zaxxer.hikari.HikariDataSource;
import com.zaxxer.hikari.metrics.MetricsTrackerFactory;
import java.sql.Connection;
import java.sql.SQLException;

/**
 * A pool that runs already, measured from here on: for where a {@link MeasuredDataSource} cannot be put. Who borrows by
 * {@link #getConnection()} is measured, who borrows of the pool itself is not.
 *
 * <p>What making a connection takes is not told, and testing one is within the wait: the driver is out of reach by now.
 * Where the pool has a tracker or a registry of the application's own, that one stays alone, and the wait is what {@link
 * #getConnection()} took as a whole; who waited in vain is then among {@link PoolMetrics#failures()}.
 */
public final class MeasuredPool {
    private final HikariDataSource pool;
    private final PoolMetrics metrics;

    /** Null where another one was there. */
    private final Tracker tracker;

    /**
     * Measures.
     *
     * @param pool that runs, or is going to with the first connection
     */
    public MeasuredPool(HikariDataSource pool) {
        this.pool = pool;
        metrics = new PoolMetrics(pool::getHikariPoolMXBean);
        boolean isFree = pool.getMetricsTrackerFactory() == null && pool.getMetricRegistry() == null;
        tracker = isFree ? new Tracker(metrics, null, LentConnection::isBack) : null;
        if (isFree) {
            pool.setMetricsTrackerFactory(tracker);
        }
    }

    /**
     * What is measured.
     *
     * @return always the same
     */
    public PoolMetrics metrics() {
        return metrics;
    }

    /**
     * In place of the pool's own.
     *
     * @return a connection that is to be closed
     * @throws SQLException the pool's own
     */
    public Connection getConnection() throws SQLException {
        boolean hasStarted = pool.getHikariPoolMXBean() != null;
        boolean isSuspendable = tracker != null && hasStarted && pool.isAllowPoolSuspension();
        return Borrow.measured(metrics, isSuspendable, () -> true, pool::getConnection, pool::isClosed);
    }

    /**
     * In place of the pool's own.
     *
     * @param connection that {@link #getConnection()} returned, or the pool itself
     */
    public void evictConnection(Connection connection) {
        if (connection instanceof LentConnection lent) {
            pool.evictConnection(lent.to);
            lent.ends();
        } else {
            pool.evictConnection(connection);
        }
    }

    /**
     * In place of the pool's own.
     *
     * @return the application's tracker, not ours; null where there is none
     */
    public MetricsTrackerFactory getMetricsTrackerFactory() {
        return tracker == null ? pool.getMetricsTrackerFactory() : tracker.factory();
    }

    /**
     * In place of the pool's own, whose one place for a tracker is taken.
     *
     * @param factory the application's, which goes on being told what it would be told
     */
    public void setMetricsTrackerFactory(MetricsTrackerFactory factory) {
        if (tracker == null) {
            pool.setMetricsTrackerFactory(factory);
        } else if (tracker.factory() != null) {
            throw new IllegalStateException("MetricsTrackerFactory can only be set one time");
        } else {
            tracker.handTo(factory);
        }
    }

    /**
     * In place of the pool's own.
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
