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
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.function.BooleanSupplier;
import org.h2.jdbc.JdbcConnection;
import org.h2.jdbcx.JdbcDataSource;
import org.junit.jupiter.api.Test;

/**
 * Figures against what the test itself stamped around them, in sums, which are exact. A host that takes the CPU away makes
 * stamps and figures longer alike.
 */
class MeasuredDataSourceTest {
    private static final int TRIALS = 10;

    /** Longer than any host takes the CPU away. */
    private static final int PATIENCE_MS = 60_000;

    private final PlantedDriver driver = new PlantedDriver();
    private final Reported reported = new Reported();

    /** Hikari counts uses in whole milliseconds: a query of 300 us counts as 0. */
    @Test
    void aUseOf300MicrosecondsIsReportedAsSuch() throws Exception {
        try (MeasuredDataSource pool = new MeasuredDataSource(config(1))) {
            int shorterThanAMs = 0;
            for (int n = 0; n < 300; n++) {
                Durations before = pool.metrics().uses().total();
                Stamps stamps = useFor300us(pool);
                long usedNs = pool.metrics().uses().total().since(before).sumNs();
                assertTrue(usedNs >= stamps.heldNs(), usedNs + " ns of " + stamps);
                assertTrue(usedNs <= stamps.allNs(), usedNs + " ns of " + stamps);
                shorterThanAMs += stamps.allNs() < 1_000_000 ? 1 : 0;
            }
            assertEquals(300, pool.metrics().uses().total().count());
            assertEquals(300, reported.usesMs.size());
            long reportedAsNone = reported.usesMs.stream().filter(ms -> ms == 0).count();
            assertTrue(reportedAsNone >= shorterThanAMs, "Hikari's own: " + reported.usesMs);
        }
    }

    @Test
    void aCatalogShowsWhatIsMeasuredUnderTheConventionsNames() throws Exception {
        Catalog catalog = new Catalog();
        try (MeasuredDataSource pool = new MeasuredDataSource(config(2))) {
            Registration shown = pool.metrics().bindTo(catalog, pool.getPoolName());
            try (Connection lent = pool.getConnection()) {
                lent.getMetaData();
                assertEquals(1, value(catalog, "db.client.connection.count", "used"));
            }
            Family.Histogram waits = (Family.Histogram) point(catalog, "db.client.connection.wait_time", "");
            assertEquals(pool.getPoolName(), waits.labels().get("db.client.connection.pool.name"));
            assertEquals(1, waits.distribution().count());
            assertEquals(pool.metrics().waits().total().sum(), waits.distribution().sum());
            Family.Histogram uses = (Family.Histogram) point(catalog, "db.client.connection.use_time", "");
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

    /** Two borrowers have the pool's two connections, and two wait for them, before 50 ms begin that all of these share. */
    @Test
    void aWaitIsThatForAConnectionAndNothingElse() throws Exception {
        HikariConfig config = config(2);
        config.setConnectionTimeout(PATIENCE_MS);
        try (MeasuredDataSource pool = new MeasuredDataSource(config)) {
            for (int trial = 0; trial < TRIALS; trial++) {
                Durations waitsBefore = pool.metrics().waits().total();
                Durations usesBefore = pool.metrics().uses().total();
                CountDownLatch have = new CountDownLatch(2);
                CountDownLatch giveBack = new CountDownLatch(1);
                List<Future<Stamps>> borrowers = new ArrayList<>();
                borrowers.add(borrow(pool, have, giveBack));
                borrowers.add(borrow(pool, have, giveBack));
                have.await();
                borrowers.add(borrow(pool, new CountDownLatch(1), giveBack));
                borrowers.add(borrow(pool, new CountDownLatch(1), giveBack));
                until(() -> pool.getHikariPoolMXBean().getThreadsAwaitingConnection() == 2);
                long begunNs = System.nanoTime();
                PlantedDriver.sleep(50);
                long sharedNs = System.nanoTime() - begunNs;
                giveBack.countDown();
                long borrowingNs = 0;
                long heldNs = 0;
                long allNs = 0;
                for (Future<Stamps> borrower : borrowers) {
                    Stamps stamps = borrower.get();
                    borrowingNs += stamps.borrowingNs();
                    heldNs += stamps.heldNs();
                    allNs += stamps.allNs();
                }
                Durations waits = pool.metrics().waits().total().since(waitsBefore);
                Durations uses = pool.metrics().uses().total().since(usesBefore);
                assertEquals(4, waits.count());
                assertEquals(4, uses.count());
                assertTrue(waits.sumNs() >= 2 * sharedNs, "waits below what two of them waited for sure");
                assertTrue(waits.sumNs() <= borrowingNs, "waits beyond the borrowers' stamps");
                assertTrue(uses.sumNs() >= heldNs, "uses below the borrowers' stamps");
                assertTrue(waits.sumNs() + uses.sumNs() <= allNs, "something is in the waits and in the uses");
            }
            assertEquals(2, driver.made.get());
            assertEquals(2, pool.metrics().creations().total().count());
            assertEquals(0, pool.metrics().pending());
            assertEquals(0, pool.metrics().unseenUses());
        }
    }

    @Test
    void theTestOfAConnectionIsNoWait() throws Exception {
        System.setProperty("com.zaxxer.hikari.aliveBypassWindowMs", "-1");
        HikariConfig config = config(1);
        config.setConnectionTimeout(PATIENCE_MS);
        try (MeasuredDataSource pool = new MeasuredDataSource(config)) {
            pool.getConnection().close();
            driver.testMs = 40;
            for (int trial = 0; trial < TRIALS; trial++) {
                Durations waitsBefore = pool.metrics().waits().total();
                Durations testsBefore = pool.metrics().tests().total();
                long askedNs = System.nanoTime();
                pool.getConnection().close();
                long tookNs = System.nanoTime() - askedNs;
                Durations tests = pool.metrics().tests().total().since(testsBefore);
                Durations waits = pool.metrics().waits().total().since(waitsBefore);
                assertEquals(1, tests.count());
                assertEquals(1, waits.count());
                assertTrue(tests.sumNs() >= 40_000_000, "a test below its sleep");
                assertTrue(tests.sumNs() + waits.sumNs() <= tookNs, "they are parts of what the borrower saw");
            }
            long hikariNs = reported.acquiredNs.get(reported.acquiredNs.size() - 1);
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
            Future<Stamps> borrower = borrow(pool, new CountDownLatch(1), new CountDownLatch(0));
            until(() -> pool.metrics().pending() == 1);
            long pendingNs = System.nanoTime();
            // Hikari itself sees no waiter.
            assertEquals(0, pool.getHikariPoolMXBean().getThreadsAwaitingConnection());
            PlantedDriver.sleep(100);
            long resumedNs = System.nanoTime();
            pool.getHikariPoolMXBean().resumePool();
            long borrowingNs = borrower.get().borrowingNs();
            Durations suspension = pool.metrics().suspensions().total().since(before);
            Durations waits = pool.metrics().waits().total().since(waitsBefore);
            assertEquals(1, suspension.count());
            assertEquals(1, waits.count());
            assertTrue(suspension.sumNs() >= resumedNs - pendingNs, "a suspension below its sleep");
            assertTrue(suspension.sumNs() + waits.sumNs() <= borrowingNs, "they are parts of what the borrower saw");
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
            assertEquals(2, reported.acquiredNs.size());
            assertEquals(1, reported.timeouts);
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
    void whatWasThereIsReportedOnAndStillThere() throws Exception {
        HikariConfig config = config(1);
        try (MeasuredDataSource pool = new MeasuredDataSource(config)) {
            use(pool, 0);
            assertSame(config.getMetricsTrackerFactory(), pool.getMetricsTrackerFactory());
            assertThrows(IllegalStateException.class, () -> pool.setMetricsTrackerFactory((name, stats) -> reported));
            assertTrue(pool.isWrapperFor(HikariDataSource.class));
            assertSame(driver.h2, pool.unwrap(JdbcDataSource.class));
            try (Connection connection = pool.getConnection()) {
                assertTrue(connection.isWrapperFor(JdbcConnection.class) || connection.unwrap(Connection.class) != null);
            }
        }
        assertEquals(2, reported.usesMs.size());
        assertTrue(reported.isClosed);
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
            pool.setMetricsTrackerFactory((name, stats) -> reported);
            use(pool, 0);
            assertEquals(1, reported.usesMs.size());
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
            // Hikari itself reports a use twice where two threads close a connection in the same moment.
            assertTrue(reported.usesMs.size() >= 52);
        }
    }

    private HikariConfig config(int size) {
        HikariConfig config = new HikariConfig();
        config.setDataSource(driver);
        config.setMaximumPoolSize(size);
        config.setConnectionTimeout(250);
        MetricsTrackerFactory factory = (name, stats) -> reported;
        config.setMetricsTrackerFactory(factory);
        return config;
    }

    /** The borrower's own timestamps, around whatever the pool may do in between. */
    private record Stamps(long askedNs, long gotNs, long closingNs, long closedNs) {
        /** The wait is within. */
        long borrowingNs() {
            return gotNs - askedNs;
        }

        /** Within the use. */
        long heldNs() {
            return closingNs - gotNs;
        }

        /** The wait and the use after it are within. */
        long allNs() {
            return closedNs - askedNs;
        }
    }

    private static Stamps useFor300us(HikariDataSource pool) throws SQLException {
        long askedNs = System.nanoTime();
        Connection connection = pool.getConnection();
        long gotNs = System.nanoTime();
        while (System.nanoTime() - gotNs < 300_000) {
            Thread.onSpinWait();
        }
        long closingNs = System.nanoTime();
        connection.close();
        return new Stamps(askedNs, gotNs, closingNs, System.nanoTime());
    }

    /** On its own thread, which counts down when it has a connection and keeps it until it may return it. */
    private static Future<Stamps> borrow(HikariDataSource pool, CountDownLatch has, CountDownLatch giveBack) {
        FutureTask<Stamps> borrower = new FutureTask<>(() -> {
            long askedNs = System.nanoTime();
            Connection connection = pool.getConnection();
            long gotNs = System.nanoTime();
            has.countDown();
            giveBack.await();
            long closingNs = System.nanoTime();
            connection.close();
            return new Stamps(askedNs, gotNs, closingNs, System.nanoTime());
        });
        new Thread(borrower).start();
        return borrower;
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

    /** What Hikari reports a tracker. */
    private static final class Reported implements IMetricsTracker {
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
