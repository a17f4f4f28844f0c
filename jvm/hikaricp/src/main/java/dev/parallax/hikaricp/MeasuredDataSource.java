package dev.parallax.hikaricp;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariCredentialsProvider;
import com.zaxxer.hikari.HikariDataSource;
import com.zaxxer.hikari.metrics.MetricsTrackerFactory;
import com.zaxxer.hikari.util.Credentials;
import com.zaxxer.hikari.util.DriverDataSource;
import com.zaxxer.hikari.util.PropertyElf;
import com.zaxxer.hikari.util.UtilityElf;
import java.sql.Connection;
import java.sql.SQLException;
import javax.sql.DataSource;

/**
 * A {@link HikariDataSource} that is measured: put it where that one stands.
 *
 * <pre>{@code
 * MeasuredDataSource pool = new MeasuredDataSource(config);
 * pool.metrics().waits().total();
 * }</pre>
 *
 * <p>A tracker or a metrics registry that the configuration names goes on being told what it was told, and one may still be
 * set later. Nothing of ours is thrown at the application, and nothing that Hikari throws is changed.
 *
 * <p>What {@code getConnection()} returns is not the pool's own class; {@code unwrap} leads to that and to the driver's. A
 * statement's {@code getConnection()} is the pool's own one.
 *
 * <p>Cost of a borrowing: four readings of the clock and two small objects, no lock.
 */
public class MeasuredDataSource extends HikariDataSource {
    /** Null while the constructors of Hikari run, and until a pool that is not configured yet starts. */
    private volatile Tracker tracker;

    private final PoolMetrics metrics;

    /** Set on a thread that may start the pool, which asks this for its configuration then: others are the application. */
    private final ThreadLocal<Boolean> isStarting = ThreadLocal.withInitial(() -> false);

    /** What the application configured, where the pool was given ours. Null where it configured none. */
    private volatile DataSource source;

    private volatile Object registry;

    /** To be configured by its setters; the pool starts with the first {@link #getConnection()}. */
    public MeasuredDataSource() {
        metrics = new PoolMetrics(this::getHikariPoolMXBean);
    }

    /**
     * Starts the pool.
     *
     * @param configuration stays as it is
     */
    public MeasuredDataSource(HikariConfig configuration) {
        this(new Prepared(configuration));
    }

    private MeasuredDataSource(Prepared prepared) {
        super(prepared);
        metrics = prepared.tracker.metrics();
        prepared.pool = this;
        source = prepared.source;
        registry = prepared.registry;
        tracker = prepared.tracker;
    }

    /**
     * What is measured.
     *
     * @return always the same
     */
    public PoolMetrics metrics() {
        return metrics;
    }

    @Override
    public Connection getConnection() throws SQLException {
        boolean hasStarted = hasStarted();
        if (!hasStarted && !isClosed()) {
            prepare();
        }
        boolean isSuspendable = hasStarted && isAllowPoolSuspension();
        Borrow.Loan loan = hasStarted ? super::getConnection : this::startAndBorrow;
        return Borrow.measured(metrics, isSuspendable, this::hasStarted, loan, this::isClosed);
    }

    private Connection startAndBorrow() throws SQLException {
        isStarting.set(true);
        try {
            return super.getConnection();
        } finally {
            isStarting.remove();
        }
    }

    private boolean hasStarted() {
        return getHikariPoolMXBean() != null;
    }

    @Override
    public void evictConnection(Connection connection) {
        if (connection instanceof LentConnection lent) {
            super.evictConnection(lent.to);
            lent.ends();
        } else {
            super.evictConnection(connection);
        }
    }

    /** The application's own. */
    @Override
    public MetricsTrackerFactory getMetricsTrackerFactory() {
        return isPoolAsking() ? super.getMetricsTrackerFactory() : registry != null ? null : tracker.factory();
    }

    /** The application's own. */
    @Override
    public Object getMetricRegistry() {
        return isPoolAsking() ? super.getMetricRegistry() : registry;
    }

    /** The application's own. */
    @Override
    public DataSource getDataSource() {
        return isPoolAsking() ? super.getDataSource() : source;
    }

    /** Without a tracker nothing of ours is there that could be told. */
    private boolean isPoolAsking() {
        return tracker == null || isStarting.get() && !hasStarted();
    }

    /** The application may set another one after a start that failed. */
    @Override
    public void setDataSource(DataSource source) {
        if (tracker == null) {
            super.setDataSource(source);
        } else {
            super.setDataSource(source == null ? null : DriverSource.of(source, metrics));
            this.source = source;
        }
    }

    /** The application's own: nothing of this pool is in another that is made of it. */
    @Override
    public void copyStateTo(HikariConfig other) {
        super.copyStateTo(other);
        if (tracker != null) {
            other.setMetricsTrackerFactory(registry != null ? null : tracker.factory());
            if (registry != null) {
                other.setMetricRegistry(registry);
            }
            other.setDataSource(source);
        }
    }

    @Override
    public void setMetricsTrackerFactory(MetricsTrackerFactory factory) {
        Tracker ours = tracker;
        if (ours == null) {
            super.setMetricsTrackerFactory(factory);
        } else if (ours.factory() != null) {
            throw new IllegalStateException("MetricsTrackerFactory can only be set one time");
        } else {
            ours.handTo(factory);
        }
    }

    @Override
    public void setMetricRegistry(Object registry) {
        if (tracker == null) {
            super.setMetricRegistry(registry);
        } else {
            setMetricsTrackerFactory(factoryOf(registry));
            this.registry = registry;
        }
    }

    /**
     * The first caller of a pool that its setters have configured. What may throw comes first: the next caller finds either
     * nothing or all of it done.
     */
    private synchronized void prepare() {
        if (tracker == null) {
            validate();
            DataSource measured = measured(this, metrics);
            Tracker ours = new Tracker(
                    metrics, factoryOf(this, super.getMetricsTrackerFactory()), LentConnection::isBack);
            source = getDataSource();
            registry = getMetricRegistry();
            if (registry != null) {
                super.setMetricRegistry(null);
            }
            super.setMetricsTrackerFactory(ours);
            super.setDataSource(measured);
            tracker = ours;
        }
    }

    /** A driver's data source as the pool would make it, measured; null where the pool looks it up elsewhere. */
    private static DataSource measured(HikariConfig config, PoolMetrics metrics) {
        DataSource source = config.getDataSource();
        if (source == null && config.getDataSourceClassName() != null) {
            source = UtilityElf.createInstance(config.getDataSourceClassName(), DataSource.class);
            PropertyElf.setTargetFromProperties(source, config.getDataSourceProperties());
        } else if (source == null && config.getJdbcUrl() != null) {
            HikariCredentialsProvider provider = config.getCredentialsProvider();
            Credentials credentials = provider != null ? provider.getCredentials() : config.getCredentials();
            source = new DriverDataSource(
                    config.getJdbcUrl(),
                    config.getDriverClassName(),
                    config.getDataSourceProperties(),
                    credentials.getUsername(),
                    credentials.getPassword());
        }
        return source == null ? null : DriverSource.of(source, metrics);
    }

    private static MetricsTrackerFactory factoryOf(HikariConfig config, MetricsTrackerFactory factory) {
        return factory != null ? factory : factoryOf(config.getMetricRegistry());
    }

    /** Hikari's own bridge to a registry, by the name of its type: what is not on the class path is not loaded. */
    static MetricsTrackerFactory factoryOf(Object registry) {
        if (registry == null) {
            return null;
        }
        String packageName = "com.zaxxer.hikari.metrics.";
        String name = UtilityElf.safeIsAssignableFrom(registry, "io.micrometer.core.instrument.MeterRegistry")
                ? "micrometer.MicrometerMetricsTrackerFactory"
                : UtilityElf.safeIsAssignableFrom(registry, "io.dropwizard.metrics5.MetricRegistry")
                        ? "dropwizard.Dropwizard5MetricsTrackerFactory"
                        : "dropwizard.CodahaleMetricsTrackerFactory";
        return UtilityElf.createInstance(packageName + name, MetricsTrackerFactory.class, registry);
    }

    /** A copy of a configuration with our tracker and data source in it, made before the pool's constructor reads it. */
    private static final class Prepared extends HikariConfig {
        private final Tracker tracker;
        private final DataSource source;
        private final Object registry;
        private volatile MeasuredDataSource pool;

        Prepared(HikariConfig configuration) {
            configuration.validate();
            configuration.copyStateTo(this);
            source = configuration.getDataSource();
            registry = configuration.getMetricRegistry();
            PoolMetrics metrics = new PoolMetrics(() -> pool == null ? null : pool.getHikariPoolMXBean());
            tracker = new Tracker(
                    metrics,
                    factoryOf(configuration, configuration.getMetricsTrackerFactory()),
                    LentConnection::isBack);
            if (registry != null) {
                setMetricRegistry(null);
            }
            setMetricsTrackerFactory(tracker);
            setDataSource(measured(configuration, metrics));
        }
    }
}
