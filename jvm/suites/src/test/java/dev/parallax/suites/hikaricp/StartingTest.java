package dev.parallax.suites.hikaricp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import com.zaxxer.hikari.pool.HikariPool.PoolInitializationException;
import dev.parallax.suites.Eventually;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

/** How a pool starts, and stops for a while. */
@ParameterizedClass
@MethodSource("dev.parallax.suites.hikaricp.Arm#here")
class StartingTest {
    private final Database database = new Database();
    private final HikariConfig config = Rig.config(database);

    @Parameter
    private Arm arm;

    @Test
    void aPoolThatCannotStartSaysSoAtOnce() {
        database.isDown = true;
        PoolInitializationException thrown =
                assertThrows(PoolInitializationException.class, () -> new Rig(arm, database, config));
        assertEquals("Failed to initialize pool: planted: the database is down", thrown.getMessage());
        assertEquals("planted: the database is down", thrown.getCause().getMessage());
    }

    @Test
    void aPoolThatMayStartLateTriesForAsLongAsItMay() throws Exception {
        database.isDown = true;
        config.setInitializationFailTimeout(30_000);
        Thread revive = new Thread(() -> {
            Eventually.until("it was tried", () -> database.refused.get() >= 1);
            database.isDown = false;
        });
        revive.start();
        try (Rig rig = new Rig(arm, database, config)) {
            assertEquals("link 1", rig.use());
        }
        revive.join(10_000);
    }

    @Test
    void aPoolThatStartsWithoutItsDatabaseHasConnectionsWhenThatIsThere() throws Exception {
        database.isDown = true;
        config.setInitializationFailTimeout(-1);
        try (Rig rig = new Rig(arm, database, config)) {
            assertEquals(0, rig.bean().getTotalConnections());
            database.isDown = false;
            Eventually.until("one", () -> rig.bean().getTotalConnections() == 1);
            rig.use();
        }
    }

    /** Its setters configure it, its first borrower starts it, and from then on it is sealed. */
    @Test
    void aPoolWithoutAConfigurationStartsWithItsFirstBorrower() throws Exception {
        HikariDataSource pool = arm.pool();
        pool.setDataSource(database);
        pool.setMaximumPoolSize(1);
        pool.setPoolName(config.getPoolName());
        assertFalse(pool.isRunning());
        assertEquals(0, database.made.get());
        // Attaching has no effect before the pool runs.
        try (Rig rig = new Rig(arm, database, pool)) {
            assertEquals("link 1", rig.use());
            assertTrue(pool.isRunning());
            assertThrows(IllegalStateException.class, () -> pool.setAutoCommit(false));
            rig.use();
        }
        assertFalse(pool.isRunning());
    }

    @Test
    void aSuspendedPoolLetsNobodyInUntilItIsResumed() throws Exception {
        config.setAllowPoolSuspension(true);
        config.setConnectionTimeout(1000);
        ExecutorService threads = Executors.newFixedThreadPool(2);
        try (Rig rig = new Rig(arm, database, config)) {
            rig.use();
            rig.bean().suspendPool();
            Future<String> first = threads.submit(rig::use);
            Future<String> second = threads.submit(rig::use);
            // Longer than a borrower would wait: a suspension has no timeout.
            Thread.sleep(1200);
            assertFalse(first.isDone() || second.isDone());
            assertEquals(0, rig.bean().getActiveConnections());
            rig.bean().softEvictConnections();
            rig.bean().resumePool();
            assertFalse(first.get().equals("link 1"));
            assertFalse(second.get().equals("link 1"));
        } finally {
            threads.shutdown();
        }
    }

    @Test
    void aPoolMayBeSuspendedOnlyWhereThatIsConfigured() throws Exception {
        try (Rig rig = new Rig(arm, database, config)) {
            assertThrows(IllegalStateException.class, () -> rig.bean().suspendPool());
            rig.use();
        }
    }
}
