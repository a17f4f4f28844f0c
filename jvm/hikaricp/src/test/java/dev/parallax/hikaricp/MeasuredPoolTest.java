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
import java.sql.Connection;
import java.sql.SQLException;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Pools that are measured from some moment on. */
class MeasuredPoolTest {
    private final PlantedDriver driver = new PlantedDriver();
    private final AtomicInteger reported = new AtomicInteger();
    private final MetricsTrackerFactory theirs = (name, stats) -> new IMetricsTracker() {
        @Override
        public void recordConnectionAcquiredNanos(long elapsedNs) {
            reported.incrementAndGet();
        }
    };

    @Test
    void aPoolThatRunsIsMeasuredFromNowOn() throws Exception {
        try (HikariDataSource pool = new HikariDataSource(config())) {
            pool.getConnection().close();
            MeasuredPool measured = new MeasuredPool(pool);
            assertNull(measured.getMetricsTrackerFactory());
            measured.setMetricsTrackerFactory(theirs);
            assertSame(theirs, measured.getMetricsTrackerFactory());
            assertThrows(IllegalStateException.class, () -> measured.setMetricsTrackerFactory(theirs));
            Connection lent = measured.getConnection();
            assertThrows(SQLException.class, measured::getConnection);
            measured.evictConnection(lent);
            lent.close();
            measured.getConnection().close();
            assertEquals(2, measured.metrics().waits().total().count());
            assertEquals(2, measured.metrics().uses().total().count());
            assertEquals(1, measured.metrics().timeouts().total().count());
            assertTrue(reported.get() >= 2, "told " + reported);
            assertEquals(0, measured.metrics().pending());
        }
    }

    @Test
    void aTrackerThatIsThereStaysAlone() throws Exception {
        HikariConfig config = config();
        config.setMetricsTrackerFactory(theirs);
        try (HikariDataSource pool = new HikariDataSource(config)) {
            MeasuredPool measured = new MeasuredPool(pool);
            assertSame(theirs, measured.getMetricsTrackerFactory());
            long beforeNs = System.nanoTime();
            Connection lent = measured.getConnection();
            long tookNs = System.nanoTime() - beforeNs;
            assertThrows(SQLException.class, measured::getConnection);
            lent.close();
            assertEquals(1, measured.metrics().waits().total().count());
            assertTrue(measured.metrics().waits().total().sumNs() <= tookNs);
            assertEquals(1, measured.metrics().uses().total().count());
            assertEquals(1, measured.metrics().failures().row("unknown").total().count());
            // Hikari reports waits that timed out as well.
            assertTrue(reported.get() >= 1);
        }
    }

    /** The pool checks its first connection when it starts, which is not the test of a lent one. */
    @Test
    void whoStartsThePoolHasAWaitAsAllOthers() throws Exception {
        try (MeasuredDataSource pool = new MeasuredDataSource()) {
            config().copyStateTo(pool);
            pool.getConnection().close();
            assertEquals(1, pool.metrics().waits().total().count());
            assertEquals(0, pool.metrics().waits().total().unusable());
            assertEquals(0, pool.metrics().tests().total().count());
        }
    }

    private HikariConfig config() {
        HikariConfig config = new HikariConfig();
        config.setDataSource(driver);
        config.setMaximumPoolSize(1);
        config.setConnectionTimeout(250);
        return config;
    }
}
