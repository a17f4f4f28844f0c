package dev.parallax.hikaricp;

import com.zaxxer.hikari.HikariPoolMXBean;
import dev.parallax.recorder.Catalog;
import dev.parallax.recorder.Description;
import dev.parallax.recorder.LabelledRecorder;
import dev.parallax.recorder.Recorder;
import dev.parallax.recorder.Registration;
import java.sql.SQLTransientConnectionException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Supplier;
import java.util.function.ToIntFunction;

/**
 * What one pool's borrowers wait for, and how long they keep a connection. All durations are recorded in nanoseconds;
 * any thread may read at any time.
 *
 * <p>The suspension, wait and test of one borrow follow one another and do not overlap. Names are those of
 * OpenTelemetry's semantic conventions for database clients where one exists.
 */
public final class PoolMetrics {
    private static final int FAILURES_MAX = 8;

    private final Recorder waits = new Recorder();
    private final Recorder tests = new Recorder();
    private final Recorder suspensions = new Recorder();
    private final Recorder timeouts = new Recorder();
    private final LabelledRecorder failures = new LabelledRecorder(FAILURES_MAX, "error.type");
    private final Recorder uses = new Recorder();
    private final Recorder creations = new Recorder();
    private final Recorder failedCreations = new Recorder();
    private final LongAdder unseenUses = new LongAdder();
    private final LongAdder pending = new LongAdder();
    private final Supplier<HikariPoolMXBean> pool;

    PoolMetrics(Supplier<HikariPoolMXBean> pool) {
        this.pool = pool;
    }

    /**
     * {@code db.client.connection.wait_time}: from asking the pool until a connection was free, without {@link
     * #tests()} and {@link #suspensions()}.
     *
     * @return wait of the borrowers that got a connection
     */
    public Recorder waits() {
        return waits;
    }

    /**
     * {@code db.client.connection.test_time}: asking the database whether an idle connection is still alive, while the
     * borrower waits. Hikari's own wait includes it. For data sources from JNDI it is not available and part of the
     * wait.
     *
     * @return test time of the borrowers whose connections were tested
     */
    public Recorder tests() {
        return tests;
    }

    /**
     * {@code db.client.connection.suspend_time}: from asking until the pool was not suspended. Hikari's own figures
     * leave it out.
     *
     * @return for pools that can be suspended, the time of each borrower that got a connection
     */
    public Recorder suspensions() {
        return suspensions;
    }

    /**
     * {@code db.client.connection.timeouts}, with the whole time waited. Hikari's own figures mix these waits with the
     * successful ones.
     *
     * @return wait of the borrowers that timed out
     */
    public Recorder timeouts() {
        return timeouts;
    }

    /**
     * {@code db.client.connection.failed}: borrowers that got no connection for another reason: {@code cancelled}
     * (interrupted), {@code pool_closed}, or {@code unknown} (for example a pool that cannot start).
     *
     * @return the time waited, by {@code error.type}
     */
    public LabelledRecorder failures() {
        return failures;
    }

    /**
     * {@code db.client.connection.use_time}: from getting a connection until it was returned, including its rollback
     * and reset.
     *
     * @return use time of all returned connections but {@link #unseenUses()}
     */
    public Recorder uses() {
        return uses;
    }

    /**
     * Connections returned without closing the object that {@code getConnection()} returned: {@code
     * statement.getConnection().close()} closes the pool's own connection.
     *
     * @return their number
     */
    public long unseenUses() {
        return unseenUses.sum();
    }

    /**
     * {@code db.client.connection.create_time}: time the driver took to connect. Empty for data sources from JNDI.
     *
     * @return time of each successful connect
     */
    public Recorder creations() {
        return creations;
    }

    /**
     * {@code db.client.connection.create_failed}: time the driver took to fail. Hikari's own figures count it as
     * creation time.
     *
     * @return time of each failed connect
     */
    public Recorder failedCreations() {
        return failedCreations;
    }

    /**
     * {@code db.client.connection.pending_requests}, including borrowers held back by a suspension. Counted by this
     * class; does not touch the pool.
     *
     * @return number of borrowers waiting now
     */
    public long pending() {
        return pending.sum();
    }

    /**
     * {@code db.client.connection.count} by state, current; Hikari's own gauges are up to a second old. Walks all
     * connections: call it per scrape, not per borrow.
     *
     * @return empty until the pool has started
     */
    public Optional<HikariPoolMXBean> pool() {
        return Optional.ofNullable(pool.get());
    }

    /**
     * Registers all series in a catalog under the names given with each recorder, with the label {@code
     * db.client.connection.pool.name}. {@link #timeouts()} appear as {@code db.client.connection.timeouts}, a count,
     * and as {@code db.client.connection.timeout_time}; {@link #unseenUses()} as {@code
     * db.client.connection.unseen_uses}; the pool's connections as {@code db.client.connection.count} by {@code
     * db.client.connection.state}.
     *
     * <p>When a pool replaces another of the same name, bind the new one before closing the old registration: the
     * totals then continue.
     *
     * @param catalog to register in
     * @param poolName as returned by {@code getPoolName()}
     * @return closing it removes the series
     */
    public Registration bindTo(Catalog catalog, String poolName) {
        Shown in = new Shown(catalog, poolName);
        try {
            in.show();
        } catch (IllegalArgumentException e) {
            in.close();
            throw e;
        }
        return in;
    }

    /** The series in one catalog, under one pool name. */
    private final class Shown implements Registration {
        private final Catalog catalog;
        private final String poolName;
        private final List<Registration> shown = new ArrayList<>();

        Shown(Catalog catalog, String poolName) {
            this.catalog = catalog;
            this.poolName = poolName;
        }

        void show() {
            durations("wait_time", "Wait for a connection.", waits);
            durations("test_time", "Test of an idle connection before it is lent.", tests);
            durations("suspend_time", "Wait while the pool was suspended.", suspensions);
            durations("timeout_time", "Wait of borrowers that timed out.", timeouts);
            durations("use_time", "From getting a connection to returning it.", uses);
            durations("create_time", "Time the driver took to connect.", creations);
            durations("create_failed", "Time the driver took to fail.", failedCreations);
            shown.add(catalog.durations(
                    description("failed", "s", "Borrowers that got no connection for a reason other than a timeout."), failures));
            shown.add(catalog.counter(
                    description("timeouts", "{timeout}", "Borrowers that timed out."), () -> timeouts.total().count()));
            shown.add(catalog.counter(
                    description("unseen_uses", "{connection}", "Connections returned without being measured."),
                    PoolMetrics.this::unseenUses));
            shown.add(catalog.upDownCounter(
                    description("pending_requests", "{request}", "Borrowers that wait for a connection."),
                    PoolMetrics.this::pending));
            count("used", HikariPoolMXBean::getActiveConnections);
            count("idle", HikariPoolMXBean::getIdleConnections);
        }

        @Override
        public void close() {
            shown.forEach(Registration::close);
        }

        private Description description(String name, String unit, String help) {
            return Description.of("db.client.connection." + name, unit, help)
                    .with("db.client.connection.pool.name", poolName);
        }

        private void durations(String name, String help, Recorder recorder) {
            shown.add(catalog.durations(description(name, "s", help), recorder));
        }

        private void count(String state, ToIntFunction<HikariPoolMXBean> connections) {
            shown.add(catalog.upDownCounter(
                    description("count", "{connection}", "Connections in the pool.")
                            .with("db.client.connection.state", state),
                    () -> pool().map(bean -> (double) connections.applyAsInt(bean)).orElse(Double.NaN)));
        }
    }

    void startWaiting() {
        pending.increment();
    }

    void stopWaiting() {
        pending.decrement();
    }

    void recordLent(Borrow borrow) {
        waits.record(borrow.startNs(), borrow.gotNs() - borrow.testNs());
        if (borrow.testNs() > 0) {
            tests.record(borrow.testNs());
        }
        if (borrow.isSuspendable()) {
            suspensions.record(borrow.askedNs(), borrow.startNs());
        }
    }

    void recordFailed(Borrow borrow, Throwable thrown, boolean isClosed) {
        if (borrow.isTimeout() && thrown instanceof SQLTransientConnectionException) {
            timeouts.recordSince(borrow.askedNs());
        } else {
            boolean isInterrupt = thrown.getCause() instanceof InterruptedException;
            failures.row(isInterrupt ? "cancelled" : isClosed ? "pool_closed" : "unknown")
                    .recordSince(borrow.askedNs());
        }
    }

    void countUnseenUse() {
        unseenUses.increment();
    }
}
