package dev.parallax.suites.hikaricp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.zaxxer.hikari.HikariConfig;
import dev.parallax.suites.Eventually;
import java.sql.Connection;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * How long a connection lives. What Hikari has no shorter than 10 or 30 s in a configuration is set when the pool runs, by
 * the bean that is documented for that.
 */
@ParameterizedClass
@MethodSource("dev.parallax.suites.hikaricp.Arm#here")
class LifetimeTest {
    private final Database database = new Database();
    private final HikariConfig config = Rig.config(database);

    @Parameter
    private Arm arm;

    @Test
    void aConnectionThatIsIdleLivesNoLongerThanItsLifetime() throws Exception {
        try (Rig rig = rig()) {
            rig.pool.getHikariConfigMXBean().setMaxLifetime(300);
            // A connection whose lifetime the pool knows.
            rig.bean().softEvictConnections();
            // The pool reads the lifetime when it has created a connection, before it lends it.
            Eventually.until("another", () -> rig.bean().getIdleConnections() == 1 || database.closed.get() >= 2);
            rig.pool.getHikariConfigMXBean().setMaxLifetime(1_800_000);
            Eventually.until("the other is at its end", () -> database.closed.get() >= 2);
            String link = rig.use();
            assertFalse(List.of("link 1", "link 2").contains(link), link);
        }
    }

    @Test
    void aConnectionThatIsLentIsNotTakenAwayAtTheEndOfItsLifetime() throws Exception {
        ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor();
        config.setScheduledExecutor(timer);
        try (Rig rig = rig()) {
            rig.pool.getHikariConfigMXBean().setMaxLifetime(200);
            rig.bean().softEvictConnections();
            Eventually.until("another", () -> database.made.get() >= 2);
            Connection lent = rig.get();
            String link = Rig.link(lent);
            rig.pool.getHikariConfigMXBean().setMaxLifetime(1_800_000);
            // The pool's own timer runs this after the end of what was created before.
            timer.schedule(() -> {}, 200, TimeUnit.MILLISECONDS).get();
            assertFalse(lent.isClosed());
            lent.createStatement().execute("select 1");
            lent.close();
            assertFalse(rig.use().equals(link), "its time is over when it comes back");
        } finally {
            timer.shutdownNow();
        }
    }

    @Test
    void whatIsIdleForTooLongGoesDownToTheMinimum() throws Exception {
        config.setMaximumPoolSize(4);
        config.setMinimumIdle(1);
        try (Rig rig = rig()) {
            rig.pool.getHikariConfigMXBean().setIdleTimeout(50);
            Connection[] all = {rig.get(), rig.get(), rig.get()};
            for (Connection one : all) {
                one.close();
            }
            Eventually.until("the minimum", () -> rig.bean().getTotalConnections() == 1);
            assertEquals(1, rig.bean().getIdleConnections());
            rig.use();
        }
    }

    @Test
    void aPoolFillsUpToTheMinimumOfIdleOnes() throws Exception {
        config.setMaximumPoolSize(4);
        config.setMinimumIdle(2);
        try (Rig rig = rig()) {
            Eventually.until("two", () -> rig.bean().getIdleConnections() == 2);
            try (Connection lent = rig.get()) {
                assertFalse(lent.isClosed());
                Eventually.until("two more", () -> rig.bean().getIdleConnections() == 2);
                assertEquals(3, rig.bean().getTotalConnections());
            }
        }
    }

    @Test
    void aPoolThatMayBecomeLargerLendsMore() throws Exception {
        try (Rig rig = rig();
                Connection first = rig.get()) {
            rig.pool.getHikariConfigMXBean().setMaximumPoolSize(2);
            try (Connection second = rig.get()) {
                assertFalse(Rig.link(first).equals(Rig.link(second)));
            }
        }
    }

    /** Idle connections are tested; one that is dead is replaced, and no caller has waited for that. */
    @Test
    void whatIsIdleIsKeptAlive() throws Exception {
        try (Rig rig = rig()) {
            rig.pool.setKeepaliveTime(100);
            rig.bean().softEvictConnections();
            Eventually.until("another", () -> database.made.get() == 2);
            database.calls();
            Eventually.until(
                    "it is asked again and again",
                    () -> database.calls().stream().anyMatch(call -> call.startsWith("2 isValid")));
            Eventually.until(
                    "and again", () -> database.calls().stream().anyMatch(call -> call.startsWith("2 isValid")));
            database.isDead = true;
            Eventually.until("it is found dead", () -> database.closed.get() >= 2);
            database.isDead = false;
            Eventually.until("it is replaced", () -> rig.bean().getIdleConnections() == 1);
            assertTrue(!rig.reportsTests() || rig.tests() == 0, "no borrower waited for these tests");
            rig.pool.setKeepaliveTime(0);
            rig.use();
        }
    }

    @Test
    void whatIsEvictedWhileItIsLentIsReplacedAtOnce() throws Exception {
        try (Rig rig = rig()) {
            Connection lent = rig.get();
            assertEquals("link 1", Rig.link(lent));
            rig.evict(lent);
            Eventually.until("another", () -> rig.bean().getIdleConnections() == 1);
            assertEquals("link 2", rig.use());
            lent.close();
            assertEquals("link 2", rig.use());
            assertEquals(1, rig.bean().getTotalConnections());
        }
    }

    @Test
    void softEvictionClosesWhatIsIdleNowAndWhatIsLentWhenItComesBack() throws Exception {
        config.setMaximumPoolSize(2);
        try (Rig rig = rig()) {
            Eventually.until("full", () -> rig.bean().getIdleConnections() == 2);
            Connection lent = rig.get();
            rig.bean().softEvictConnections();
            Eventually.until("the idle one is closed", () -> database.closed.get() == 1);
            assertFalse(lent.isClosed());
            lent.createStatement().execute("select 1");
            lent.close();
            Eventually.until("the lent one is closed", () -> database.closed.get() == 2);
            Eventually.until("full", () -> rig.bean().getIdleConnections() == 2);
        }
    }

    /** In the log, with where it was borrowed; and when it is finally returned, that as well. */
    @Test
    void whatIsKeptForTooLongIsReportedAsALeak() throws Exception {
        try (Log log = new Log();
                Rig rig = rig()) {
            rig.pool.getHikariConfigMXBean().setLeakDetectionThreshold(100);
            Connection kept = rig.get();
            // The pool learns of the threshold when it reads its configuration the next time.
            for (int n = 0; n < 20 && log.leaks.isEmpty(); n++) {
                kept.close();
                kept = rig.get();
                Thread.sleep(300);
            }
            StackTraceElement[] where = log.leaks.get(0).getThrown().getStackTrace();
            assertTrue(
                    List.of(where).stream().anyMatch(frame -> frame.getClassName().equals(Rig.class.getName())),
                    "who borrowed it");
            kept.close();
            Eventually.until("no leak", () -> log.returns.size() == 1);
            assertEquals(1, log.leaks.size());
            rig.use();
        }
    }

    /** Hikari's messages about leaks. */
    private static final class Log extends Handler implements AutoCloseable {
        final List<LogRecord> leaks = new CopyOnWriteArrayList<>();
        final List<LogRecord> returns = new CopyOnWriteArrayList<>();
        private final Logger logger = Logger.getLogger("com.zaxxer.hikari.pool.ProxyLeakTask");

        Log() {
            setLevel(Level.INFO);
            logger.addHandler(this);
        }

        @Override
        public void publish(LogRecord reported) {
            if (reported.getMessage().startsWith("Connection leak detection triggered")) {
                leaks.add(reported);
            } else if (reported.getMessage().contains("was returned to the pool (unleaked)")) {
                returns.add(reported);
            }
        }

        @Override
        public void flush() {}

        @Override
        public void close() {
            logger.removeHandler(this);
        }
    }

    private Rig rig() {
        return new Rig(arm, database, config);
    }
}
