package dev.parallax.hikaricp;

import com.zaxxer.hikari.HikariPoolMXBean;
import dev.parallax.recorder.Catalog;
import dev.parallax.recorder.Description;
import dev.parallax.recorder.Labelled;
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
 * What callers of one pool wait for and how long they keep a connection.
 *
 * <p>Suspension, wait and test of one borrowing follow each other and do not overlap. Names are those of OpenTelemetry's
 * semantic conventions for database clients where there is one.
 */
public final class PoolMetrics {
    private static final int FAILURES_MAX = 8;

    private final Recorder waits = new Recorder();
    private final Recorder tests = new Recorder();
    private final Recorder suspensions = new Recorder();
    private final Recorder timeouts = new Recorder();
    private final Labelled failures = new Labelled(FAILURES_MAX, "error.type");
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
     * {@code db.client.connection.wait_time}: from asking the pool until a connection was free, without {@link #tests()} and
     * {@link #suspensions()}.
     *
     * @return of those who got one
     */
    public Recorder waits() {
        return waits;
    }

    /**
     * {@code db.client.connection.test_time}: asking the database whether a connection that was idle still lives, while its
     * borrower waits. Hikari's own figures have it within the wait. It is not told, and within the wait, for data sources
     * that come from JNDI.
     *
     * @return of those who got a connection after a test, or several
     */
    public Recorder tests() {
        return tests;
    }

    /**
     * {@code db.client.connection.suspend_time}: from asking until the pool was not suspended. Hikari's own figures do not
     * have it.
     *
     * @return of those who got a connection of a pool that can be suspended
     */
    public Recorder suspensions() {
        return suspensions;
    }

    /**
     * {@code db.client.connection.timeouts}, with how long they waited in all. Hikari's own figures have these waits among
     * those that led to a connection.
     *
     * @return of those who waited in vain
     */
    public Recorder timeouts() {
        return timeouts;
    }

    /**
     * {@code db.client.connection.failed}: who got no connection for another reason: {@code cancelled} (interrupted),
     * {@code pool_closed}, or {@code unknown} (a pool that cannot start).
     *
     * @return how long they waited, by {@code error.type}
     */
    public Labelled failures() {
        return failures;
    }

    /**
     * {@code db.client.connection.use_time}: from having a connection until it was given back, its rollback and reset
     * included.
     *
     * @return of all that were given back but {@link #unseenUses()}
     */
    public Recorder uses() {
        return uses;
    }

    /**
     * Connections that were not given back by closing what {@code getConnection()} returned: {@code
     * statement.getConnection().close()} gives back the pool's own one.
     *
     * @return how many
     */
    public long unseenUses() {
        return unseenUses.sum();
    }

    /**
     * {@code db.client.connection.create_time}: what the driver took. Empty for data sources that come from JNDI.
     *
     * @return of the connections that were made
     */
    public Recorder creations() {
        return creations;
    }

    /**
     * {@code db.client.connection.create_failed}: what the driver took to fail. Hikari's own figures have it among those
     * that were made.
     *
     * @return of the connections that were not
     */
    public Recorder failedCreations() {
        return failedCreations;
    }

    /**
     * {@code db.client.connection.pending_requests}, those that a suspension holds back included. Asks no pool.
     *
     * @return how many wait for a connection now
     */
    public long pending() {
        return pending.sum();
    }

    /**
     * {@code db.client.connection.count} by state, as of now: Hikari's own gauges are up to a second old. Counts all
     * connections: for scraping.
     *
     * @return empty before the pool has started
     */
    public Optional<HikariPoolMXBean> pool() {
        return Optional.ofNullable(pool.get());
    }

    /**
     * Shows what is measured in a catalog, under the names that are told with each, with {@code
     * db.client.connection.pool.name}. {@link #timeouts()} are shown as {@code db.client.connection.timeouts}, a count, and
     * as {@code db.client.connection.timeout_time}; {@link #unseenUses()} as {@code db.client.connection.unseen_uses}; the
     * pool's own as {@code db.client.connection.count} by {@code db.client.connection.state}.
     *
     * <p>Of a pool that takes the place of another of its name, the totals go on from those of the other if this is called
     * before what is shown of that is closed.
     *
     * @param catalog to show it in
     * @param poolName of the pool, as {@code getPoolName()} tells it
     * @return until when it is shown
     */
    public Registration showIn(Catalog catalog, String poolName) {
        Shown in = new Shown(catalog, poolName);
        try {
            in.show();
        } catch (IllegalArgumentException e) {
            in.close();
            throw e;
        }
        return in;
    }

    /** One catalog, under one name of the pool. */
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
            durations("test_time", "Test of a connection that was idle, before it is lent.", tests);
            durations("suspend_time", "Until the pool was not suspended.", suspensions);
            durations("timeout_time", "Who waited in vain.", timeouts);
            durations("use_time", "From having a connection to giving it back.", uses);
            durations("create_time", "What the driver took to connect.", creations);
            durations("create_failed", "What the driver took to fail.", failedCreations);
            shown.add(catalog.durations(
                    description("failed", "s", "Who got no connection for another reason."), failures));
            shown.add(catalog.counter(
                    description("timeouts", "{timeout}", "Who waited in vain."), () -> timeouts.total().count()));
            shown.add(catalog.counter(
                    description("unseen_uses", "{connection}", "Connections that were given back unseen."),
                    PoolMetrics.this::unseenUses));
            shown.add(catalog.upDown(
                    description("pending_requests", "{request}", "Who waits for a connection."),
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
            shown.add(catalog.upDown(
                    description("count", "{connection}", "Connections of the pool.")
                            .with("db.client.connection.state", state),
                    () -> pool().map(bean -> (double) connections.applyAsInt(bean)).orElse(Double.NaN)));
        }
    }

    void asks() {
        pending.increment();
    }

    void asksNoMore() {
        pending.decrement();
    }

    void lent(Borrow borrow) {
        waits.record(borrow.startNs(), borrow.gotNs() - borrow.testNs());
        if (borrow.testNs() > 0) {
            tests.record(borrow.testNs());
        }
        if (borrow.isSuspendable()) {
            suspensions.record(borrow.askedNs(), borrow.startNs());
        }
    }

    void failed(Borrow borrow, Throwable thrown, boolean isClosed) {
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
