package dev.parallax.hikaricp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.codahale.metrics.MetricRegistry;
import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariPoolMXBean;
import com.zaxxer.hikari.util.Credentials;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import java.sql.Statement;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import org.h2.jdbc.JdbcConnection;
import org.junit.jupiter.api.Test;

/** What HikariCP documents of its pool, with the measured one in its place. */
class PoolBehaviourTest {
    private final PlantedDriver driver = new PlantedDriver();

    @Test
    void theOnlyConnectionIsLentAgainAndAgain() throws Exception {
        try (MeasuredDataSource pool = new MeasuredDataSource(config())) {
            Connection first = raw(pool);
            assertSame(first, raw(pool));
            assertEquals(1, driver.made.get());
        }
    }

    @Test
    void aConnectionThatIsEvictedWhileItIsLentIsReplaced() throws Exception {
        try (MeasuredDataSource pool = new MeasuredDataSource(config())) {
            Connection before = raw(pool);
            Connection lent = pool.getConnection();
            pool.evictConnection(lent);
            assertEquals(2, pool.metrics().uses().total().count());
            lent.close();
            assertEquals(2, pool.metrics().uses().total().count());
            assertNotSame(before, raw(pool));
        }
    }

    @Test
    void softEvictionTakesAwayWhatIsIdleAndWhatIsLentWhenItComesBack() throws Exception {
        try (MeasuredDataSource pool = new MeasuredDataSource(config())) {
            Connection lent = pool.getConnection();
            pool.getHikariPoolMXBean().softEvictConnections();
            assertFalse(lent.isClosed());
            lent.close();
            raw(pool);
            assertEquals(2, driver.made.get());
            assertEquals(2, pool.metrics().uses().total().count());
        }
    }

    @Test
    void aConnectionThatIsKeptForLongIsReportedAsALeakAndCanStillBeClosed() throws Exception {
        HikariConfig config = config();
        config.setLeakDetectionThreshold(2000);
        try (MeasuredDataSource pool = new MeasuredDataSource(config)) {
            Connection kept = pool.getConnection();
            PlantedDriver.sleep(2300);
            kept.close();
            assertTrue(pool.metrics().uses().total().sumNs() >= 2_300_000_000.0);
            raw(pool);
        }
    }

    @Test
    void whatABorrowerChangedIsAsBeforeForTheNext() throws Exception {
        HikariConfig config = config();
        config.setAutoCommit(false);
        try (MeasuredDataSource pool = new MeasuredDataSource(config)) {
            try (Connection connection = pool.getConnection()) {
                connection.setAutoCommit(true);
                connection.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
            }
            try (Connection connection = pool.getConnection()) {
                assertFalse(connection.getAutoCommit());
                assertEquals(Connection.TRANSACTION_READ_COMMITTED, connection.getTransactionIsolation());
            }
        }
    }

    @Test
    void aConnectionThatWasGivenBackIsOfNoUse() throws Exception {
        try (MeasuredDataSource pool = new MeasuredDataSource(config())) {
            Connection connection = pool.getConnection();
            connection.close();
            assertTrue(connection.isClosed());
            assertThrows(SQLException.class, connection::createStatement);
        }
    }

    @Test
    void aSuspendedPoolLendsWhenItIsResumed() throws Exception {
        HikariConfig config = config();
        config.setAllowPoolSuspension(true);
        try (MeasuredDataSource pool = new MeasuredDataSource(config)) {
            HikariPoolMXBean bean = pool.getHikariPoolMXBean();
            bean.suspendPool();
            Thread borrower = new Thread(() -> raw(pool));
            borrower.start();
            until(() -> pool.metrics().pending() == 1);
            assertEquals(0, bean.getActiveConnections());
            bean.resumePool();
            borrower.join(5000);
            assertEquals(1, pool.metrics().uses().total().count());
        }
        HikariConfig fixed = config();
        try (MeasuredDataSource pool = new MeasuredDataSource(fixed)) {
            assertThrows(IllegalStateException.class, () -> pool.getHikariPoolMXBean().suspendPool());
        }
    }

    @Test
    void whoWaitsForAPoolThatClosesIsReportedSo() throws Exception {
        MeasuredDataSource pool = new MeasuredDataSource(config());
        AtomicReference<SQLException> reported = new AtomicReference<>();
        Connection lent = pool.getConnection();
        Thread waiter = new Thread(() -> reported.set(assertThrows(SQLException.class, pool::getConnection)));
        waiter.start();
        until(() -> pool.metrics().pending() == 1);
        pool.close();
        waiter.join(5000);
        assertTrue(reported.get() != null);
        assertEquals(0, pool.metrics().pending());
        lent.close();
        assertThrows(SQLException.class, pool::getConnection);
        assertEquals("pool_closed", pool.metrics().failures().rows().get(0).values().get(0));
        assertTrue(pool.isClosed());
    }

    @Test
    void aPoolThatCannotStartSaysSoAsItDid() {
        driver.isDown = true;
        assertThrows(RuntimeException.class, () -> new MeasuredDataSource(config()));
        MeasuredDataSource lazy = new MeasuredDataSource();
        lazy.setDataSource(driver);
        assertThrows(SQLException.class, lazy::getConnection);
        assertEquals("unknown", lazy.metrics().failures().rows().get(0).values().get(0));
        // It can be tried again, as without us.
        driver.isDown = false;
        raw(lazy);
        assertEquals(1, lazy.metrics().uses().total().count());
        lazy.close();
    }

    /** If this fails, an application whose database was down finds our objects where it set its own. */
    @Test
    void afterAStartThatFailedTheApplicationsObjectsAreThere() throws Exception {
        MetricRegistry registry = new MetricRegistry();
        PlantedDriver other = new PlantedDriver();
        driver.isDown = true;
        try (MeasuredDataSource lazy = new MeasuredDataSource()) {
            lazy.setDataSource(driver);
            lazy.setMetricRegistry(registry);
            lazy.setPoolName("planted");
            assertThrows(SQLException.class, lazy::getConnection);
            assertSame(driver, lazy.getDataSource());
            assertSame(registry, lazy.getMetricRegistry());
            assertNull(lazy.getMetricsTrackerFactory());
            lazy.setDataSource(other);
            assertSame(other, lazy.getDataSource());
            raw(lazy);
            assertSame(other, lazy.getDataSource());
            assertSame(registry, lazy.getMetricRegistry());
            assertTrue(lazy.metrics().creations().total().count() >= 1);
            assertEquals(1, lazy.metrics().uses().total().count());
            assertEquals(1, registry.timer("planted.pool.Wait").getCount());
        }
    }

    /** If this fails, what the first caller left half done is mistaken for the application's by the second. */
    @Test
    void credentialsThatAreNotThereAtFirstLeaveNothingBehind() throws Exception {
        MetricRegistry registry = new MetricRegistry();
        AtomicInteger asked = new AtomicInteger();
        try (MeasuredDataSource lazy = new MeasuredDataSource()) {
            lazy.setJdbcUrl("jdbc:h2:mem:");
            lazy.setMaximumPoolSize(1);
            lazy.setMetricRegistry(registry);
            lazy.setPoolName("planted");
            lazy.setCredentialsProvider(() -> {
                if (asked.getAndIncrement() == 0) {
                    throw new IllegalStateException("planted: no credentials yet");
                }
                return Credentials.of("sa", "");
            });
            assertThrows(IllegalStateException.class, lazy::getConnection);
            assertSame(registry, lazy.getMetricRegistry());
            try (Connection lent = lazy.getConnection();
                    Statement statement = lent.createStatement()) {
                statement.getConnection().close();
            }
            assertSame(registry, lazy.getMetricRegistry());
            assertNull(lazy.getMetricsTrackerFactory());
            assertNull(lazy.getDataSource());
            assertEquals(1, lazy.metrics().unseenUses());
            assertEquals(1, registry.histogram("planted.pool.Usage").getCount());
        }
    }

    @Test
    void whoWaitsInVainIsReportedAfterTheTimeThatWasAskedFor() throws Exception {
        HikariConfig config = config();
        config.setConnectionTimeout(250);
        try (MeasuredDataSource pool = new MeasuredDataSource(config);
                Connection lent = pool.getConnection()) {
            SQLException thrown = assertThrows(SQLTransientConnectionException.class, pool::getConnection);
            assertTrue(thrown.getMessage().contains("request timed out"), thrown.getMessage());
            assertFalse(lent.isClosed());
        }
    }

    /** A registry that the configuration names is served by Hikari's own bridge, as before. */
    @Test
    void aMetricsRegistryOfTheApplicationGoesOnBeingFed() throws Exception {
        MetricRegistry registry = new MetricRegistry();
        HikariConfig config = config();
        config.setMetricRegistry(registry);
        config.setPoolName("planted");
        try (MeasuredDataSource pool = new MeasuredDataSource(config)) {
            raw(pool);
            assertEquals(1, registry.timer("planted.pool.Wait").getCount());
            assertEquals(1, registry.histogram("planted.pool.Usage").getCount());
        }
        assertSame(registry, config.getMetricRegistry());
    }

    private HikariConfig config() {
        HikariConfig config = new HikariConfig();
        config.setDataSource(driver);
        config.setMaximumPoolSize(1);
        config.setConnectionTimeout(3000);
        return config;
    }

    /** Borrows and gives back; the driver's own connection. */
    private static Connection raw(MeasuredDataSource pool) {
        try (Connection connection = pool.getConnection()) {
            return connection.unwrap(JdbcConnection.class);
        } catch (SQLException e) {
            throw new AssertionError(e);
        }
    }

    private static void until(BooleanSupplier isSo) throws InterruptedException {
        for (int n = 0; n < 5000 && !isSo.getAsBoolean(); n++) {
            Thread.sleep(1);
        }
        assertTrue(isSo.getAsBoolean(), "not within 5 s");
    }
}
