package dev.parallax.hikaricp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import com.zaxxer.hikari.metrics.IMetricsTracker;
import com.zaxxer.hikari.metrics.MetricsTrackerFactory;
import dev.parallax.recorder.Catalog;
import dev.parallax.recorder.Durations;
import dev.parallax.recorder.Family;
import dev.parallax.recorder.Registration;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.function.BooleanSupplier;
import org.h2.jdbc.JdbcConnection;
import org.h2.jdbcx.JdbcDataSource;
import org.junit.jupiter.api.Test;

/** Figures against what was planted, or what the test itself stamped. 19 of 20 trials: a host takes the CPU away. */
class MeasuredDataSourceTest {
    private static final int TRIALS = 20;
    private static final int GOOD_TRIALS = 19;
    private static final int WARM_UP = 20_000;

    /** Until as many count: a host on which four of five do not is no place to measure. */
    private static final int TRIALS_MAX = 100;

    /** One part in 128 of 50 ms is the bucket's, the rest what may come between two stamps on a busy host. */
    private static final long NEAR_NS = 2_000_000;

    /** To a trial, of which the median is compared: a host that is busy takes the CPU away between two stamps. */
    private static final int USES = 15;

    private final PlantedDriver driver = new PlantedDriver();
    private final Told told = new Told();

    /** Hikari counts uses in whole milliseconds: a query of 300 us is none. */
    @Test
    void aUseOf300MicrosecondsIsToldAsSuch() throws Exception {
        try (MeasuredDataSource pool = new MeasuredDataSource(config(1))) {
            // What is compared is the stamps, not how long interpreted code takes between two of them.
            for (int n = 0; n < WARM_UP; n++) {
                pool.getConnection().close();
            }
            told.usesMs.clear();
            int good = 0;
            int shorterThanAMs = 0;
            for (int trial = 0; trial < TRIALS; trial++) {
                Durations before = pool.metrics().uses().total();
                long[] stampedNs = new long[USES];
                for (int n = 0; n < USES; n++) {
                    stampedNs[n] = useFor300us(pool);
                    shorterThanAMs += stampedNs[n] < 1_000_000 ? 1 : 0;
                }
                Durations uses = pool.metrics().uses().total().since(before);
                assertEquals(USES, uses.count());
                Arrays.sort(stampedNs);
                long medianNs = uses.atRank(USES / 2 + 1).orElseThrow();
                good += Math.abs(medianNs - stampedNs[USES / 2]) <= stampedNs[USES / 2] * 0.05 ? 1 : 0;
            }
            assertTrue(good >= GOOD_TRIALS, good + " of " + TRIALS);
            assertEquals(TRIALS * USES, told.usesMs.size());
            long toldAsNone = told.usesMs.stream().filter(ms -> ms == 0).count();
            assertTrue(shorterThanAMs > 0 && toldAsNone >= shorterThanAMs, "Hikari's own: " + told.usesMs);
        }
    }

    @Test
    void aCatalogShowsWhatIsMeasuredUnderTheConventionsNames() throws Exception {
        Catalog catalog = new Catalog();
        try (MeasuredDataSource pool = new MeasuredDataSource(config(2))) {
            Registration shown = pool.metrics().showIn(catalog, pool.getPoolName());
            try (Connection lent = pool.getConnection()) {
                lent.getMetaData();
                assertEquals(1, value(catalog, "db.client.connection.count", "used"));
            }
            Family.Spread waits = (Family.Spread) point(catalog, "db.client.connection.wait_time", "");
            assertEquals(pool.getPoolName(), waits.labels().get("db.client.connection.pool.name"));
            assertEquals(1, waits.distribution().count());
            assertEquals(pool.metrics().waits().total().sum(), waits.distribution().sum());
            Family.Spread uses = (Family.Spread) point(catalog, "db.client.connection.use_time", "");
            assertEquals(1, uses.distribution().count());
            assertEquals(0, value(catalog, "db.client.connection.count", "used"));
            assertTrue(value(catalog, "db.client.connection.count", "idle") >= 1);
            assertEquals(0, value(catalog, "db.client.connection.timeouts", ""));
            shown.close();
            assertTrue(catalog.read().isEmpty());
        }
    }

    private static double value(Catalog catalog, String name, String state) {
        return ((Family.Value) point(catalog, name, state)).value();
    }

    private static Family.Point point(Catalog catalog, String name, String state) {
        return catalog.read().stream()
                .filter(family -> family.name().equals(name))
                .flatMap(family -> family.points().stream())
                .filter(point -> point.labels().getOrDefault("db.client.connection.state", "").equals(state))
                .findAny()
                .orElseThrow();
    }

    /**
     * A pool of two and four borrowers of 50 ms each, against what the borrowers themselves stamp. A busy host takes the CPU
     * away between any two stamps of four threads: a trial counts where theirs are near what was planted.
     */
    @Test
    void aWaitIsThatForAConnectionAndNothingElse() throws Exception {
        try (MeasuredDataSource pool = new MeasuredDataSource(config(2))) {
            borrowAtOnce(pool, 4);
            int trials = 0;
            int counted = 0;
            int good = 0;
            while (counted < TRIALS && trials < TRIALS_MAX) {
                trials++;
                Durations waitsBefore = pool.metrics().waits().total();
                Durations usesBefore = pool.metrics().uses().total();
                long[][] stamped = borrowAtOnce(pool, 4);
                Durations waits = pool.metrics().waits().total().since(waitsBefore);
                Durations uses = pool.metrics().uses().total().since(usesBefore);
                assertEquals(4, waits.count());
                assertEquals(4, uses.count());
                if (areNear(stamped[0], 0, 0, 50, 50) && areNear(stamped[1], 50, 50, 50, 50)) {
                    counted++;
                    good += areNear(waits, stamped[0]) && areNear(uses, stamped[1]) ? 1 : 0;
                }
                // On any host: a wait lies within the stamps of who waited, and a use holds the sleep of who used it.
                for (int i = 0; i < 4; i++) {
                    long mostNs = stamped[0][i] + stamped[0][i] / 64 + 1;
                    assertTrue(waits.atRank(i + 1).orElseThrow() <= mostNs, "a wait beyond its stamps");
                }
                assertTrue(uses.sumNs() >= 4 * 50_000_000, "uses below their sleeps");
            }
            assertEquals(TRIALS, counted, "by the borrowers' stamps, trials of " + trials + " that were as planted");
            assertTrue(good >= GOOD_TRIALS, good + " of " + counted + " trials that count, of " + trials);
            // Two of four wait for a use of 50 ms, less what they came later.
            assertTrue(pool.metrics().waits().total().maxNs().orElseThrow() >= 45_000_000, "nobody waited");
            assertEquals(2, driver.made.get());
            assertEquals(2, pool.metrics().creations().total().count());
            assertEquals(0, pool.metrics().pending());
            assertEquals(0, pool.metrics().unseenUses());
        }
    }

    @Test
    void theTestOfAConnectionIsNoWait() throws Exception {
        System.setProperty("com.zaxxer.hikari.aliveBypassWindowMs", "-1");
        try (MeasuredDataSource pool = new MeasuredDataSource(config(1))) {
            pool.getConnection().close();
            driver.testMs = 40;
            int trials = 0;
            int counted = 0;
            int good = 0;
            while (counted < TRIALS && trials < TRIALS_MAX) {
                trials++;
                Durations waitsBefore = pool.metrics().waits().total();
                Durations testsBefore = pool.metrics().tests().total();
                long[] stamped = {System.nanoTime()};
                pool.getConnection().close();
                stamped[0] = System.nanoTime() - stamped[0];
                Durations tests = pool.metrics().tests().total().since(testsBefore);
                Durations waits = pool.metrics().waits().total().since(waitsBefore);
                assertEquals(1, tests.count());
                assertEquals(1, waits.count());
                assertTrue(tests.sumNs() >= 40_000_000, "a test below its sleep");
                assertTrue(tests.sumNs() + waits.sumNs() <= stamped[0], "they are parts of what the borrower saw");
                if (areNear(stamped, 40)) {
                    counted++;
                    good += isNear(tests, 1, 40) && isNear(waits, 1, 0) ? 1 : 0;
                }
            }
            assertEquals(TRIALS, counted, "by the borrower's stamps, trials of " + trials + " that were as planted");
            assertTrue(good >= GOOD_TRIALS, good + " of " + counted + " trials that count, of " + trials);
            long hikariNs = told.acquiredNs.get(told.acquiredNs.size() - 1);
            assertTrue(hikariNs >= 40_000_000, "Hikari's own wait has it: " + hikariNs);

            // The application's own test of its connection is its own time.
            Durations before = pool.metrics().tests().total();
            try (Connection connection = pool.getConnection()) {
                assertTrue(connection.isValid(1));
            }
            assertEquals(1, pool.metrics().tests().total().since(before).count());

            // A dead one is replaced, and both the test and the making of another have their time.
            driver.isDead = true;
            driver.makeMs = 30;
            Thread revive = new Thread(() -> {
                PlantedDriver.sleep(60);
                driver.isDead = false;
            });
            revive.start();
            before = pool.metrics().tests().total();
            pool.getConnection().close();
            revive.join();
            assertEquals(1, pool.metrics().tests().total().since(before).count());
            assertTrue(pool.metrics().creations().total().count() >= 2);
        } finally {
            System.clearProperty("com.zaxxer.hikari.aliveBypassWindowMs");
        }
    }

    @Test
    void aSuspensionIsNoWait() throws Exception {
        HikariConfig config = config(1);
        config.setAllowPoolSuspension(true);
        try (MeasuredDataSource pool = new MeasuredDataSource(config)) {
            pool.getConnection().close();
            Durations waitsBefore = pool.metrics().waits().total();
            Durations before = pool.metrics().suspensions().total();
            pool.getHikariPoolMXBean().suspendPool();
            long[] askedNs = new long[1];
            Thread borrower = new Thread(() -> {
                askedNs[0] = System.nanoTime();
                use(pool, 0);
            });
            borrower.start();
            until(() -> pool.metrics().pending() == 1);
            // Hikari itself sees nobody.
            assertEquals(0, pool.getHikariPoolMXBean().getThreadsAwaitingConnection());
            PlantedDriver.sleep(100);
            long resumedNs = System.nanoTime();
            pool.getHikariPoolMXBean().resumePool();
            borrower.join(5000);
            Durations suspension = pool.metrics().suspensions().total().since(before);
            assertEquals(1, suspension.count());
            assertEquals(resumedNs - askedNs[0], suspension.sumNs(), 20_000_000);
            assertTrue(isNear(pool.metrics().waits().total().since(waitsBefore), 1, 0));
            assertEquals(0, pool.metrics().pending());
        }
    }

    @Test
    void whoWaitsInVainIsNotAmongThoseWhoGotOne() throws Exception {
        try (MeasuredDataSource pool = new MeasuredDataSource(config(1));
                Connection taken = pool.getConnection()) {
            assertThrows(SQLTransientConnectionException.class, pool::getConnection);
            assertEquals(1, pool.metrics().waits().total().count());
            assertEquals(1, pool.metrics().timeouts().total().count());
            assertTrue(pool.metrics().timeouts().total().sumNs() >= 250_000_000);
            // Hikari's own waits: both.
            assertEquals(2, told.acquiredNs.size());
            assertEquals(1, told.timeouts);
            assertEquals(1, pool.metrics().pool().orElseThrow().getActiveConnections());

            Thread waiter = new Thread(() -> assertThrows(SQLException.class, pool::getConnection));
            waiter.start();
            until(() -> pool.metrics().pending() == 1);
            waiter.interrupt();
            waiter.join(5000);
            assertEquals("cancelled", pool.metrics().failures().rows().get(0).values().get(0));
            assertTrue(taken.isValid(1));
        }
    }

    @Test
    void creationsThatFailAreNotAmongThoseThatDidNot() throws Exception {
        driver.makeMs = 20;
        driver.isDown = true;
        HikariConfig config = config(1);
        config.setInitializationFailTimeout(-1);
        try (MeasuredDataSource pool = new MeasuredDataSource(config)) {
            assertThrows(SQLTransientConnectionException.class, pool::getConnection);
            assertEquals(0, pool.metrics().creations().total().count());
            assertTrue(pool.metrics().failedCreations().total().count() >= 1);
            driver.isDown = false;
            // After failures it holds back for longer and longer, here for longer than a borrower waits.
            until(() -> isUsable(pool));
            Durations creations = pool.metrics().creations().total();
            assertEquals(1, creations.count());
            assertTrue(creations.sumNs() >= 20_000_000, "made in " + creations.sumNs());
        }
    }

    @Test
    void whatWasThereIsToldOnAndStillThere() throws Exception {
        HikariConfig config = config(1);
        try (MeasuredDataSource pool = new MeasuredDataSource(config)) {
            use(pool, 0);
            assertSame(config.getMetricsTrackerFactory(), pool.getMetricsTrackerFactory());
            assertThrows(IllegalStateException.class, () -> pool.setMetricsTrackerFactory((name, stats) -> told));
            assertTrue(pool.isWrapperFor(HikariDataSource.class));
            assertSame(driver.h2, pool.unwrap(JdbcDataSource.class));
            try (Connection connection = pool.getConnection()) {
                assertTrue(connection.isWrapperFor(JdbcConnection.class) || connection.unwrap(Connection.class) != null);
            }
        }
        assertEquals(2, told.usesMs.size());
        assertTrue(told.isClosed);
    }

    /** As a framework makes it: by its setters, then a tracker for the pool that already runs. */
    @Test
    void aPoolThatItsSettersConfigureIsMeasuredAsWell() throws Exception {
        try (MeasuredDataSource pool = new MeasuredDataSource()) {
            pool.setJdbcUrl("jdbc:h2:mem:");
            pool.setMaximumPoolSize(1);
            assertTrue(pool.metrics().pool().isEmpty());
            use(pool, 0);
            assertNull(pool.getMetricsTrackerFactory());
            pool.setMetricsTrackerFactory((name, stats) -> told);
            use(pool, 0);
            assertEquals(1, told.usesMs.size());
            assertEquals(2, pool.metrics().uses().total().count());
            assertEquals(1, pool.metrics().creations().total().count());
            assertTrue(pool.unwrap(DriverSource.class) != null);
        }
    }

    @Test
    void aConnectionIsGivenBackOnceHoweverItIsClosed() throws Exception {
        try (MeasuredDataSource pool = new MeasuredDataSource(config(1))) {
            Connection connection = pool.getConnection();
            connection.close();
            connection.close();
            assertTrue(connection.isClosed());
            assertEquals(1, pool.metrics().uses().total().count());

            for (int round = 0; round < 50; round++) {
                closeAtOnce(pool.getConnection());
            }
            assertEquals(51, pool.metrics().uses().total().count() + pool.metrics().unseenUses());

            // The statement's connection is the pool's own one: it comes back, and of that only the number is known.
            long unseen = pool.metrics().unseenUses();
            Connection again = pool.getConnection();
            Statement statement = again.createStatement();
            statement.getConnection().close();
            again.close();
            assertEquals(unseen + 1, pool.metrics().unseenUses());
            assertEquals(52, pool.metrics().uses().total().count() + pool.metrics().unseenUses());
            // Hikari itself tells a use twice where two threads close a connection in the same moment.
            assertTrue(told.usesMs.size() >= 52);
        }
    }

    private HikariConfig config(int size) {
        HikariConfig config = new HikariConfig();
        config.setDataSource(driver);
        config.setMaximumPoolSize(size);
        config.setConnectionTimeout(250);
        MetricsTrackerFactory factory = (name, stats) -> told;
        config.setMetricsTrackerFactory(factory);
        return config;
    }

    /** Returns what the borrower stamps. */
    private static long useFor300us(HikariDataSource pool) throws SQLException {
        Connection connection = pool.getConnection();
        long begunNs = System.nanoTime();
        long endNs = begunNs + 300_000;
        while (System.nanoTime() - endNs < 0) {
            Thread.onSpinWait();
        }
        connection.close();
        return System.nanoTime() - begunNs;
    }

    /** For 50 ms each. Returns the waits and the uses, the shortest first. */
    private static long[][] borrowAtOnce(HikariDataSource pool, int borrowers) throws Exception {
        long[][] stamped = new long[2][borrowers];
        Thread[] threads = new Thread[borrowers];
        CyclicBarrier start = new CyclicBarrier(borrowers);
        for (int i = 0; i < borrowers; i++) {
            int at = i;
            threads[i] = new Thread(() -> {
                try {
                    start.await();
                    long askedNs = System.nanoTime();
                    Connection connection = pool.getConnection();
                    long gotNs = System.nanoTime();
                    PlantedDriver.sleep(50);
                    connection.close();
                    stamped[0][at] = gotNs - askedNs;
                    stamped[1][at] = System.nanoTime() - gotNs;
                } catch (Exception e) {
                    throw new AssertionError(e);
                }
            });
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join(5000);
        }
        Arrays.sort(stamped[0]);
        Arrays.sort(stamped[1]);
        return stamped;
    }

    private static boolean areNear(Durations durations, long[] stampedNs) {
        for (int i = 0; i < stampedNs.length; i++) {
            if (Math.abs(durations.atRank(i + 1).orElseThrow() - stampedNs[i]) > NEAR_NS) {
                return false;
            }
        }
        return true;
    }

    private static boolean areNear(long[] stampedNs, int... plantedMs) {
        for (int i = 0; i < stampedNs.length; i++) {
            if (Math.abs(stampedNs[i] - plantedMs[i] * 1_000_000L) > NEAR_NS) {
                return false;
            }
        }
        return true;
    }

    private static void closeAtOnce(Connection connection) throws Exception {
        Thread other = new Thread(() -> {
            try {
                connection.close();
            } catch (SQLException e) {
                throw new AssertionError(e);
            }
        });
        other.start();
        connection.close();
        other.join(5000);
    }

    private static void use(HikariDataSource pool, int ms) {
        try (Connection connection = pool.getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute("select 1");
            PlantedDriver.sleep(ms);
        } catch (SQLException e) {
            throw new AssertionError(e);
        }
    }

    /** Within 10 ms: what a thread that is woken up takes on a host that is busy. */
    private static boolean isNear(Durations durations, int rank, double ms) {
        return Math.abs(durations.atRank(rank).orElseThrow() / 1e6 - ms) <= 10;
    }

    private static boolean isUsable(MeasuredDataSource pool) {
        try {
            pool.getConnection().close();
            return true;
        } catch (SQLException e) {
            return false;
        }
    }

    private static void until(BooleanSupplier isSo) throws InterruptedException {
        for (int n = 0; n < 5000 && !isSo.getAsBoolean(); n++) {
            Thread.sleep(1);
        }
        assertTrue(isSo.getAsBoolean(), "not within 5 s");
    }

    /** What Hikari tells a tracker. */
    private static final class Told implements IMetricsTracker {
        final List<Long> usesMs = Collections.synchronizedList(new ArrayList<>());
        final List<Long> acquiredNs = Collections.synchronizedList(new ArrayList<>());
        volatile int timeouts;
        volatile boolean isClosed;

        @Override
        public void recordConnectionUsageMillis(long ms) {
            usesMs.add(ms);
        }

        @Override
        public void recordConnectionAcquiredNanos(long ns) {
            acquiredNs.add(ns);
        }

        @Override
        public void recordConnectionTimeout() {
            timeouts = timeouts + 1;
        }

        @Override
        public void close() {
            isClosed = true;
        }
    }
}
