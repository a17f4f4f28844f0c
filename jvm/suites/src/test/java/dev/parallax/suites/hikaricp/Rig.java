package dev.parallax.suites.hikaricp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import com.zaxxer.hikari.HikariPoolMXBean;
import dev.parallax.hikaricp.MeasuredDataSource;
import dev.parallax.hikaricp.MeasuredPool;
import dev.parallax.hikaricp.PoolMetrics;
import dev.parallax.recorder.Durations;
import dev.parallax.recorder.LabelledRecorder;
import dev.parallax.suites.Eventually;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A pool with its own account of all calls. When a scenario is over and everything is returned, the measured figures
 * must equal that account: so all scenarios check our figures without having to do so explicitly.
 */
final class Rig implements AutoCloseable {
    private static final AtomicInteger POOLS = new AtomicInteger();

    final HikariDataSource pool;
    final AtomicInteger granted = new AtomicInteger();
    private final Arm arm;
    private final Database database;
    private final MeasuredPool attached;
    private final AtomicInteger timedOut = new AtomicInteger();
    private final AtomicInteger refused = new AtomicInteger();

    /** Before the first connection is requested. */
    private final long begunNs = System.nanoTime();

    /** Those of them that a closed pool rejected immediately, which the agent cannot see. */
    private final AtomicInteger turnedAway = new AtomicInteger();

    /** Connections that the pool gave up while they were lent, and does not report. */
    private int broken;

    Rig(Arm arm, Database database, HikariConfig config) {
        this(arm, database, arm.pool(config));
    }

    Rig(Arm arm, Database database, HikariDataSource pool) {
        this.arm = arm;
        this.database = database;
        this.pool = pool;
        attached = arm == Arm.ATTACHED ? new MeasuredPool(pool) : null;
    }

    /** For a scenario with a wait that times out: the shortest that Hikari allows. */
    static final int SOON_MS = 250;

    /** Of one connection, which is waited for as long as a busy host takes to make it. */
    static HikariConfig config(Database database) {
        HikariConfig config = new HikariConfig();
        config.setDataSource(database);
        config.setMaximumPoolSize(1);
        config.setConnectionTimeout(30_000);
        config.setPoolName("suite-" + POOLS.incrementAndGet());
        return config;
    }

    HikariPoolMXBean bean() {
        return pool.getHikariPoolMXBean();
    }

    Connection get() throws SQLException {
        boolean isClosed = pool.isClosed();
        try {
            Connection lent = attached != null ? attached.getConnection() : pool.getConnection();
            granted.incrementAndGet();
            return lent;
        } catch (SQLException e) {
            (e instanceof SQLTransientConnectionException ? timedOut : refused).incrementAndGet();
            turnedAway.addAndGet(isClosed ? 1 : 0);
            throw e;
        }
    }

    /** Borrows and gives back. Returns which of the database's connections it was. */
    String use() throws SQLException {
        try (Connection lent = get()) {
            return link(lent);
        }
    }

    /** Which of the database's connections it is. */
    static String link(Connection lent) throws SQLException {
        String text = lent.toString();
        return text.substring(text.indexOf("link "));
    }

    void evict(Connection lent) {
        if (attached != null) {
            attached.evictConnection(lent);
        } else {
            pool.evictConnection(lent);
        }
    }

    /** A lent connection is going to break: its use is seen by the agent alone. */
    void breaks() {
        broken += arm == Arm.AGENT ? 0 : 1;
    }

    /** Waits until this many threads wait for a connection, as counted by the pool itself, which all arms have. */
    void untilWaiting(int threads) {
        Eventually.until(threads + " wait", () -> bean().getThreadsAwaitingConnection() == threads);
    }

    /** Closes the pool and compares. Everything has to be given back by now. */
    @Override
    public void close() {
        pool.close();
        if (arm == Arm.PLAIN) {
            return;
        }
        Map<String, Long> expected = new TreeMap<>(Map.of(
                "waits", (long) granted.get(),
                "uses", (long) granted.get() - broken,
                "timeouts", (long) timedOut.get(),
                "failed", (long) refused.get() - (arm == Arm.AGENT ? turnedAway.get() : 0),
                "pending", 0L,
                "creations", (long) database.made.get() + database.refused.get()));
        Map<String, Long> reported = figures();
        if (arm == Arm.ATTACHED) {
            // It is reported of connections when they are there.
            expected.remove("creations");
            reported.remove("creations");
        }
        assertEquals(expected, reported, arm + " against what the scenario did");
        long mostNs = granted.get() * (System.nanoTime() - begunNs);
        assertTrue(borrowedNs() <= mostNs, arm + ": " + borrowedNs() + " ns, and there were " + mostNs);
    }

    /** How long all waited for connections, and had them. */
    private long borrowedNs() {
        if (arm == Arm.AGENT) {
            return Arm.ENDPOINT.sumNs(pool.getPoolName(), "db.client.connection.wait_time")
                    + Arm.ENDPOINT.sumNs(pool.getPoolName(), "db.client.connection.use_time");
        }
        return metrics().waits().total().sumNs() + metrics().uses().total().sumNs();
    }

    /** The figures of our instruments. */
    Map<String, Long> figures() {
        return arm == Arm.AGENT ? ofAgent(Arm.ENDPOINT.figures(pool.getPoolName())) : of(metrics());
    }

    /** How many connections were reported as tested; only for arms that report it. */
    long tests() {
        return arm == Arm.AGENT
                ? Arm.ENDPOINT.figures(pool.getPoolName()).getOrDefault("db.client.connection.test_time", 0L)
                : metrics().tests().total().count();
    }

    /** Whether tests of connections are distinguished. */
    boolean reportsTests() {
        return arm == Arm.AGENT || arm == Arm.MEASURED;
    }

    private PoolMetrics metrics() {
        return switch (arm) {
            case MEASURED -> ((MeasuredDataSource) pool).metrics();
            case ATTACHED -> attached.metrics();
            default -> throw new AssertionError(arm + " has none");
        };
    }

    private static Map<String, Long> of(PoolMetrics metrics) {
        Durations failures = metrics.failures().other().total();
        for (LabelledRecorder.Row row : metrics.failures().rows()) {
            failures = failures.plus(row.recorder().total());
        }
        return new TreeMap<>(Map.of(
                "waits", metrics.waits().total().count(),
                "uses", metrics.uses().total().count() + metrics.unseenUses(),
                "timeouts", metrics.timeouts().total().count(),
                "failed", failures.count(),
                "pending", metrics.pending(),
                "creations", metrics.creations().total().count() + metrics.failedCreations().total().count()));
    }

    private static Map<String, Long> ofAgent(Map<String, Long> series) {
        String prefix = "db.client.connection.";
        return new TreeMap<>(Map.of(
                "waits", series.getOrDefault(prefix + "wait_time", 0L),
                "uses", series.getOrDefault(prefix + "use_time", 0L),
                "timeouts", series.getOrDefault(prefix + "timeouts", 0L),
                "failed", series.getOrDefault(prefix + "failed", 0L),
                // A number that is always reported: without it the pool is not known.
                "pending", series.getOrDefault(prefix + "pending_requests", -1L),
                "creations",
                        series.getOrDefault(prefix + "create_time", 0L)
                                + series.getOrDefault(prefix + "create_failed", 0L)));
    }
}
