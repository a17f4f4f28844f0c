package dev.parallax.suites.hikaricp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.zaxxer.hikari.HikariConfig;
import dev.parallax.suites.Eventually;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

/** Which caller gets a connection, when, and what it gets if there is none. */
@ParameterizedClass
@MethodSource("dev.parallax.suites.hikaricp.Arm#here")
class BorrowingTest {
    private final Database database = new Database();
    private final HikariConfig config = Rig.config(database);

    @Parameter
    private Arm arm;

    @Test
    void whoWaitsLongerThanTheConnectionTimeoutIsReportedSo() throws Exception {
        config.setConnectionTimeout(Rig.SOON_MS);
        try (Rig rig = rig();
                Connection taken = rig.get()) {
            long askedNs = System.nanoTime();
            SQLException thrown = assertThrows(SQLTransientConnectionException.class, rig::get);
            assertTrue(System.nanoTime() - askedNs >= (Rig.SOON_MS - 1) * 1_000_000L, "not before its time");
            String start = rig.pool.getPoolName() + " - Connection is not available, request timed out after ";
            assertTrue(thrown.getMessage().startsWith(start), thrown.getMessage());
            assertTrue(thrown.getMessage().endsWith("(total=1, active=1, idle=0, waiting=0)"), thrown.getMessage());
            assertFalse(taken.isClosed());
        }
    }

    @Test
    void aTimeoutReportsWhatTheDatabaseSaidLast() throws Exception {
        config.setInitializationFailTimeout(-1);
        config.setConnectionTimeout(Rig.SOON_MS);
        database.isDown = true;
        try (Rig rig = rig()) {
            // The pool knows of a refusal before it tries the next time.
            Eventually.until("it was tried twice", () -> database.refused.get() >= 2);
            SQLException thrown = assertThrows(SQLTransientConnectionException.class, rig::get);
            assertEquals("planted: the database is down", thrown.getCause().getMessage());
            database.isDown = false;
            Eventually.until("it is back", () -> rig.bean().getIdleConnections() == 1);
            assertEquals("link 1", rig.use());
        }
    }

    @Test
    void whoIsInterruptedWhileHeWaitsIsReportedSo() throws Exception {
        try (Rig rig = rig();
                Connection taken = rig.get()) {
            SQLException[] reported = new SQLException[1];
            boolean[] isInterrupted = new boolean[1];
            Thread waiter = new Thread(() -> {
                reported[0] = assertThrows(SQLException.class, rig::get);
                isInterrupted[0] = Thread.currentThread().isInterrupted();
            });
            waiter.start();
            rig.untilWaiting(1);
            waiter.interrupt();
            waiter.join(10_000);
            assertEquals(rig.pool.getPoolName() + " - Interrupted during connection acquisition", reported[0].getMessage());
            assertInstanceOf(InterruptedException.class, reported[0].getCause());
            assertTrue(isInterrupted[0], "whoever looks for it later finds the interrupt");
            assertEquals(1, rig.bean().getActiveConnections());
            assertFalse(taken.isClosed());
        }
    }

    @Test
    void allWhoWaitAreServedInTheEnd() throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(4);
        try (Rig rig = rig()) {
            List<Future<String>> all = new ArrayList<>();
            try (Connection taken = rig.get()) {
                assertEquals("link 1", Rig.link(taken));
                for (int i = 0; i < 4; i++) {
                    all.add(threads.submit(rig::use));
                }
                rig.untilWaiting(4);
                assertEquals(0, rig.bean().getIdleConnections());
            }
            for (Future<String> one : all) {
                assertEquals("link 1", one.get());
            }
        } finally {
            threads.shutdown();
        }
    }

    /** Hikari first tries the connections that a thread had before: so the same thread gets the same connection. */
    @Test
    void aThreadGetsWhatItHadBefore() throws Exception {
        config.setMaximumPoolSize(3);
        try (Rig rig = rig()) {
            Eventually.until("it is full", () -> rig.bean().getTotalConnections() == 3);
            String first = rig.use();
            for (int n = 0; n < 20; n++) {
                assertEquals(first, rig.use());
            }
        }
    }

    @Test
    void aStormFindsNeverMoreThanThereAre() throws Exception {
        config.setMaximumPoolSize(3);
        ExecutorService threads = Executors.newFixedThreadPool(8);
        AtomicInteger lent = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        try (Rig rig = rig()) {
            List<Future<?>> all = new ArrayList<>();
            for (int i = 0; i < 8; i++) {
                all.add(threads.submit(() -> {
                    for (int n = 0; n < 300; n++) {
                        try (Connection connection = rig.get()) {
                            most.accumulateAndGet(lent.incrementAndGet(), Math::max);
                            assertTrue(connection.isValid(1));
                            lent.decrementAndGet();
                        }
                    }
                    return null;
                }));
            }
            for (Future<?> one : all) {
                one.get();
            }
            assertTrue(most.get() <= 3, "lent at once: " + most);
            assertEquals(2400, rig.granted.get());
            assertEquals(0, rig.bean().getActiveConnections());
            assertEquals(0, rig.bean().getThreadsAwaitingConnection());
            assertTrue(database.made.get() <= 3, "made: " + database.made);
        } finally {
            threads.shutdown();
        }
    }

    @Test
    void aConnectionThatIsClosedTwiceIsLentToOne() throws Exception {
        config.setMaximumPoolSize(2);
        try (Rig rig = rig()) {
            Connection first = rig.get();
            first.close();
            first.close();
            assertTrue(first.isClosed());
            assertFalse(first.isValid(1));
            assertThrows(SQLException.class, first::createStatement);
            try (Connection second = rig.get();
                    Connection third = rig.get()) {
                assertFalse(Rig.link(second).equals(Rig.link(third)));
                // The caller that has returned it closes it a third time, which must not affect the next borrower.
                first.close();
                assertFalse(second.isClosed());
                assertFalse(third.isClosed());
                assertEquals(2, rig.bean().getActiveConnections());
            }
        }
    }

    @Test
    void aConnectionThatDiedWhileItWasIdleIsReplaced() throws Exception {
        System.setProperty("com.zaxxer.hikari.aliveBypassWindowMs", "-1");
        try (Rig rig = rig()) {
            assertEquals("link 1", rig.use());
            database.isDead = true;
            Thread revive = new Thread(() -> {
                Eventually.until("it was tested and found dead", () -> database.closed.get() >= 1);
                database.isDead = false;
            });
            revive.start();
            String next = rig.use();
            revive.join(10_000);
            assertFalse(next.equals("link 1"), next);
            assertTrue(!rig.reportsTests() || rig.tests() == 2, "of two borrowings, each with at least one test");
        } finally {
            System.clearProperty("com.zaxxer.hikari.aliveBypassWindowMs");
        }
    }

    /** As it is documented: {@code isValid} within the validation timeout, or a query of the application's own. */
    @Test
    void theTestOfAConnectionIsTheOneThatIsConfigured() throws Exception {
        System.setProperty("com.zaxxer.hikari.aliveBypassWindowMs", "-1");
        config.setValidationTimeout(2000);
        try (Rig rig = rig()) {
            database.calls();
            rig.use();
            List<String> calls = database.calls();
            assertEquals(List.of("1 setNetworkTimeout ... 2000", "1 isValid 2"), calls.subList(0, 2));
        }
        Database other = new Database();
        HikariConfig query = Rig.config(other);
        query.setConnectionTestQuery("select 7");
        try (Rig rig = new Rig(arm, other, query)) {
            rig.use();
            assertFalse(other.calls().stream().anyMatch(call -> call.contains("isValid")));
            assertTrue(!rig.reportsTests() || rig.tests() == 1, "the query is a test as well");
        } finally {
            System.clearProperty("com.zaxxer.hikari.aliveBypassWindowMs");
        }
    }

    @Test
    void aConnectionThatWasJustUsedIsNotTested() throws Exception {
        System.setProperty("com.zaxxer.hikari.aliveBypassWindowMs", "600000");
        try (Rig rig = rig()) {
            rig.use();
            database.calls();
            rig.use();
            assertFalse(database.calls().stream().anyMatch(call -> call.contains("isValid")));
            assertTrue(!rig.reportsTests() || rig.tests() == 0);
        } finally {
            System.clearProperty("com.zaxxer.hikari.aliveBypassWindowMs");
        }
    }

    @Test
    void aBorrowerIsNotTheOneWhoNamesAUser() {
        try (Rig rig = rig()) {
            assertThrows(SQLException.class, () -> rig.pool.getConnection("user", "secret"));
        }
    }

    /** A caller that borrows several at once holds different ones. */
    @Test
    void aThreadMayHoldAllThereAre() throws Exception {
        config.setMaximumPoolSize(2);
        config.setConnectionTimeout(Rig.SOON_MS);
        try (Rig rig = rig()) {
            Eventually.until("it is full", () -> rig.bean().getTotalConnections() == 2);
            try (Connection first = rig.get();
                    Connection second = rig.get()) {
                assertFalse(Rig.link(first).equals(Rig.link(second)));
                assertThrows(SQLTransientConnectionException.class, rig::get);
                assertEquals(2, rig.bean().getActiveConnections());
            }
        }
    }

    private Rig rig() {
        return new Rig(arm, database, config);
    }
}
