package dev.parallax.suites.hikaricp;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.zaxxer.hikari.HikariConfig;
import dev.parallax.suites.Eventually;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

/** How a pool ends. */
@ParameterizedClass
@MethodSource("dev.parallax.suites.hikaricp.Arm#here")
class ClosingTest {
    private final Database database = new Database();
    private final HikariConfig config = Rig.config(database);

    @Parameter
    private Arm arm;

    @Test
    void aClosedPoolLendsNothing() throws Exception {
        try (Rig rig = new Rig(arm, database, config)) {
            rig.use();
            rig.pool.close();
            assertTrue(rig.pool.isClosed());
            SQLException thrown = assertThrows(SQLException.class, rig::get);
            assertTrue(thrown.getMessage().endsWith(rig.pool + " has been closed."), thrown.getMessage());
            // Closing it once more does no harm.
            rig.pool.close();
        }
        Eventually.until("all are closed", () -> database.open() == 0);
    }

    @Test
    void whoWaitsWhenAPoolClosesGetsNothing() throws Exception {
        // They are reported when their time is over, and all must wait until then.
        config.setConnectionTimeout(3000);
        ExecutorService threads = Executors.newFixedThreadPool(3);
        try (Rig rig = new Rig(arm, database, config)) {
            Connection lent = rig.get();
            Future<?>[] waiters = {threads.submit(rig::get), threads.submit(rig::get), threads.submit(rig::get)};
            rig.untilWaiting(3);
            rig.pool.close();
            for (Future<?> waiter : waiters) {
                Throwable thrown = assertThrows(ExecutionException.class, waiter::get).getCause();
                assertTrue(thrown instanceof SQLException, thrown.toString());
            }
            lent.close();
        } finally {
            threads.shutdown();
        }
        Eventually.until("all are closed", () -> database.open() == 0);
    }

    @Test
    void aPoolThatClosesTakesAwayWhatIsLent() throws Exception {
        try (Rig rig = new Rig(arm, database, config)) {
            Connection lent = rig.get();
            rig.pool.close();
            Eventually.until("all are closed", () -> database.open() == 0);
            assertThrows(SQLException.class, () -> lent.createStatement().execute("select 1"));
            lent.close();
            assertTrue(lent.isClosed());
        }
    }
}
