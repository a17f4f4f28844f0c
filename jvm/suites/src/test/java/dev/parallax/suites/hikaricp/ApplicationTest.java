package dev.parallax.suites.hikaricp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.codahale.metrics.MetricRegistry;
import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import com.zaxxer.hikari.HikariPoolMXBean;
import com.zaxxer.hikari.metrics.IMetricsTracker;
import com.zaxxer.hikari.metrics.MetricsTrackerFactory;
import com.zaxxer.hikari.metrics.PoolStats;
import java.lang.management.ManagementFactory;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.FutureTask;
import javax.management.JMX;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import org.h2.jdbc.JdbcConnection;
import org.h2.jdbcx.JdbcDataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

/** What an application sees of its pool: wrappers, names, figures, and what it configured itself. */
@ParameterizedClass
@MethodSource("dev.parallax.suites.hikaricp.Arm#here")
class ApplicationTest {
    private final Database database = new Database();
    private final HikariConfig config = Rig.config(database);

    @Parameter
    private Arm arm;

    @Test
    void aConnectionLeadsToTheDriversOwn() throws Exception {
        try (Rig rig = rig();
                Connection lent = rig.get()) {
            assertTrue(lent.isWrapperFor(JdbcConnection.class));
            assertTrue(lent.unwrap(JdbcConnection.class).isValid(1));
            assertTrue(lent.isWrapperFor(Connection.class));
            assertFalse(lent.isWrapperFor(String.class));
            assertThrows(SQLException.class, () -> lent.unwrap(String.class));
            assertThrows(SQLException.class, () -> lent.unwrap(Statement.class));
        }
    }

    @Test
    void aPoolLeadsToTheDatabasesOwn() throws Exception {
        try (Rig rig = rig()) {
            rig.use();
            assertTrue(rig.pool.isWrapperFor(HikariDataSource.class));
            assertSame(rig.pool, rig.pool.unwrap(HikariDataSource.class));
            assertTrue(rig.pool.isWrapperFor(Database.class));
            assertSame(database, rig.pool.unwrap(Database.class));
            assertTrue(rig.pool.unwrap(JdbcDataSource.class).getURL().startsWith("jdbc:h2:mem:"));
            assertFalse(rig.pool.isWrapperFor(String.class));
            assertThrows(SQLException.class, () -> rig.pool.unwrap(String.class));
        }
    }

    /** Also what Hikari builds itself from is as the application reported it. */
    @Test
    void aPoolReportsWhatItWasConfiguredWith() throws Exception {
        MetricRegistry registry = new MetricRegistry();
        config.setMetricRegistry(registry);
        config.setConnectionTimeout(12_345);
        try (Rig rig = rig()) {
            rig.use();
            assertSame(database, rig.pool.getDataSource());
            assertSame(registry, rig.pool.getMetricRegistry());
            assertNull(rig.pool.getJdbcUrl());
            assertEquals(12_345, rig.pool.getHikariConfigMXBean().getConnectionTimeout());
            assertEquals("HikariDataSource (" + config.getPoolName() + ")", rig.pool.toString());
        }
        assertEquals(database, config.getDataSource());
    }

    @Test
    void aPoolOfAUrlHasNoDataSource() throws Exception {
        HikariConfig url = new HikariConfig();
        url.setJdbcUrl("jdbc:h2:mem:");
        url.setUsername("planted");
        url.setPassword("secret");
        url.setMaximumPoolSize(1);
        try (HikariDataSource pool = arm.pool(url)) {
            assertNull(pool.getDataSource());
            assertEquals("jdbc:h2:mem:", pool.getJdbcUrl());
            try (Connection lent = pool.getConnection()) {
                assertEquals("PLANTED", lent.getMetaData().getUserName());
            }
        }
    }

    @Test
    void whoIsNamedIsWhoConnects() throws Exception {
        config.setUsername("planted");
        config.setPassword("secret");
        try (Rig rig = rig()) {
            rig.use();
        }
        assertTrue(database.calls().contains("as planted secret"));
    }

    /** A new password for what is made from now on. */
    @Test
    void credentialsMayChangeWhileItRuns() throws Exception {
        config.setUsername("planted");
        config.setPassword("secret");
        try (Rig rig = rig()) {
            rig.use();
            rig.pool.getHikariConfigMXBean().setPassword("rotated");
            rig.bean().softEvictConnections();
            assertEquals("link 2", rig.use());
        }
        assertTrue(database.calls().contains("as planted rotated"));
    }

    @Test
    void aConnectionSaysWhatItIs() throws Exception {
        try (Rig rig = rig();
                Connection lent = rig.get()) {
            String text = lent.toString();
            assertTrue(text.matches("HikariProxyConnection@[0-9]+ wrapping link 1"), text);
        }
    }

    @Test
    void aConnectionIsItselfAndNoOther() throws Exception {
        config.setMaximumPoolSize(2);
        try (Rig rig = rig();
                Connection first = rig.get();
                Connection second = rig.get()) {
            assertEquals(first, first);
            assertFalse(first.equals(second));
            Set<Connection> all = new HashSet<>(List.of(first, second));
            assertTrue(all.contains(first));
            assertEquals(2, all.size());
        }
    }

    /** A statement and its results lead back to a connection of the pool, not past it. */
    @Test
    void aStatementLeadsBackToThePoolsConnection() throws Exception {
        try (Rig rig = rig()) {
            try (Connection lent = rig.get();
                    Statement statement = lent.createStatement()) {
                assertFalse(statement.getConnection().isWrapperFor(String.class));
                assertEquals(lent.toString(), statement.getConnection().toString());
                assertEquals(lent.toString(), lent.getMetaData().getConnection().toString());
                assertSame(statement, statement.executeQuery("select 1").getStatement());
            }
            Connection lent = rig.get();
            lent.createStatement().getConnection().close();
            assertTrue(lent.isClosed());
            lent.close();
            assertEquals("link 1", rig.use());
        }
    }

    @Test
    void theBeanCountsWhatThereIs() throws Exception {
        config.setRegisterMbeans(true);
        config.setMaximumPoolSize(2);
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        ObjectName name = new ObjectName("com.zaxxer.hikari:type=Pool (" + config.getPoolName() + ")");
        try (Rig rig = rig()) {
            HikariPoolMXBean bean =
                    JMX.newMXBeanProxy(server, name, HikariPoolMXBean.class);
            FutureTask<String> waiter = new FutureTask<>(rig::use);
            try (Connection first = rig.get();
                    Connection second = rig.get()) {
                assertFalse(first.equals(second));
                assertEquals(2, bean.getActiveConnections());
                assertEquals(2, bean.getTotalConnections());
                assertEquals(0, bean.getIdleConnections());
                new Thread(waiter).start();
                rig.untilWaiting(1);
                assertEquals(1, bean.getThreadsAwaitingConnection());
            }
            waiter.get();
            assertEquals(2, bean.getIdleConnections());
            assertEquals(0, bean.getActiveConnections());
        }
        assertFalse(server.isRegistered(name));
    }

    /** What an application's own tracker hears is what it hears without us. */
    @Test
    void aTrackerHearsOfEverything() throws Exception {
        Reported reported = new Reported();
        config.setMetricsTrackerFactory(reported);
        try (Rig rig = rig()) {
            rig.use();
            rig.use();
            assertSame(reported, rig.pool.getMetricsTrackerFactory());
            assertThrows(
                    IllegalStateException.class, () -> rig.pool.setMetricsTrackerFactory((name, stats) -> new Reported.Ears()));
            assertEquals(List.of("acquired", "used", "acquired", "used"), reported.heard);
        }
        assertEquals("closed", reported.heard.get(reported.heard.size() - 1));
        assertEquals(Map.of(config.getPoolName(), 1), reported.pools);
    }

    @Test
    void aTrackerHearsOfWhoWaitedInVain() throws Exception {
        Reported reported = new Reported();
        config.setMetricsTrackerFactory(reported);
        config.setConnectionTimeout(Rig.SOON_MS);
        HikariDataSource pool = arm.pool(config);
        try (pool;
                Connection lent = pool.getConnection()) {
            assertThrows(SQLException.class, pool::getConnection);
            assertFalse(lent.isClosed());
        }
        // Hikari reports a wait that timed out like one that got a connection, and then the timeout.
        assertEquals(List.of("acquired", "acquired", "timeout", "used", "closed"), reported.heard);
    }

    @Test
    void aRegistryIsFedByHikarisOwnBridge() throws Exception {
        MetricRegistry registry = new MetricRegistry();
        config.setMetricRegistry(registry);
        try (Rig rig = rig()) {
            rig.use();
            String pool = config.getPoolName();
            assertEquals(1, registry.timer(pool + ".pool.Wait").getCount());
            assertEquals(1, registry.histogram(pool + ".pool.Usage").getCount());
            assertEquals(1, registry.getGauges().get(pool + ".pool.TotalConnections").getValue());
        }
        assertTrue(registry.getMetrics().isEmpty(), "a pool that is closed takes its metrics with it");
    }

    /** A configuration that is made of a pool's makes a pool like it, which is another one. */
    @Test
    void aPoolsConfigurationMakesAnother() throws Exception {
        HikariConfig copy = new HikariConfig();
        try (Rig rig = rig()) {
            rig.use();
            rig.pool.copyStateTo(copy);
            copy.setPoolName(copy.getPoolName() + "-copy");
            assertSame(database, copy.getDataSource());
            // One that is attached has the pool's own place for a tracker.
            assertTrue(arm == Arm.ATTACHED || copy.getMetricsTrackerFactory() == null);
        }
        try (Rig another = new Rig(arm, database, copy)) {
            assertEquals("link 2", another.use());
            // The account of the database is over both pools.
            database.made.decrementAndGet();
        }
    }

    /** Writes down what it hears. */
    private static final class Reported implements MetricsTrackerFactory {
        final List<String> heard = new CopyOnWriteArrayList<>();
        final Map<String, Integer> pools = new HashMap<>();

        @Override
        public IMetricsTracker create(String poolName, PoolStats stats) {
            pools.merge(poolName, 1, Integer::sum);
            return new Ears(this);
        }

        private record Ears(Reported reported) implements IMetricsTracker {
            Ears() {
                this(new Reported());
            }

            @Override
            public void recordConnectionCreatedMillis(long ms) {
                reported.heard.add("created");
            }

            @Override
            public void recordConnectionAcquiredNanos(long ns) {
                reported.heard.add("acquired");
            }

            @Override
            public void recordConnectionUsageMillis(long ms) {
                reported.heard.add("used");
            }

            @Override
            public void recordConnectionTimeout() {
                reported.heard.add("timeout");
            }

            @Override
            public void close() {
                reported.heard.add("closed");
            }
        }
    }

    private Rig rig() {
        return new Rig(arm, database, config);
    }
}
