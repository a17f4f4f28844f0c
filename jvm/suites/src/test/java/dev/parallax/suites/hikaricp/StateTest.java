package dev.parallax.suites.hikaricp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.SQLExceptionOverride;
import dev.parallax.suites.Eventually;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.SQLTimeoutException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

/** What a borrower finds, what he leaves, and what becomes of a connection that broke in his hands. */
@ParameterizedClass
@MethodSource("dev.parallax.suites.hikaricp.Arm#here")
class StateTest {
    private final Database database = new Database();
    private final HikariConfig config = Rig.config(database);

    @Parameter
    private Arm arm;

    @Test
    void whatABorrowerSetIsAsConfiguredForTheNext() throws Exception {
        config.setReadOnly(true);
        config.setCatalog("orders");
        config.setSchema("eu");
        config.setTransactionIsolation("TRANSACTION_REPEATABLE_READ");
        try (Rig rig = rig()) {
            try (Connection lent = rig.get()) {
                checkConfigured(lent);
                lent.setReadOnly(false);
                lent.setCatalog("else");
                lent.setSchema("else");
                lent.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
                lent.setAutoCommit(false);
                lent.setNetworkTimeout(Runnable::run, 1234);
            }
            try (Connection lent = rig.get()) {
                checkConfigured(lent);
            }
        }
    }

    private static void checkConfigured(Connection lent) throws SQLException {
        assertTrue(lent.isReadOnly());
        assertEquals("orders", lent.getCatalog());
        assertEquals("eu", lent.getSchema());
        assertEquals(Connection.TRANSACTION_REPEATABLE_READ, lent.getTransactionIsolation());
        assertTrue(lent.getAutoCommit());
        assertEquals(0, lent.getNetworkTimeout());
    }

    /** If this fails, we send a database something that it would not receive without us, or in another order. */
    @Test
    void theDriverIsAskedWhatItIsAskedWithoutUs() throws Exception {
        List<String> made = List.of(
                "login within 30", "1 getNetworkTimeout", "1 setNetworkTimeout ... 5000", "1 isReadOnly",
                "1 setReadOnly true", "1 getAutoCommit", "1 setAutoCommit false", "1 isValid 5",
                "1 getTransactionIsolation", "1 createStatement", "1 setNetworkTimeout ... 0");
        List<String> first = List.of(
                "1 prepareStatement insert into t values (?)", "1 setReadOnly false", "1 setSavepoint here",
                "1 setNetworkTimeout ... 99", "1 rollback", "1 setReadOnly true", "1 setNetworkTimeout ... 0",
                "1 clearWarnings");
        List<String> second = List.of(
                "1 createStatement", "1 getMetaData", "1 commit", "1 clearWarnings");
        List<String> all = new ArrayList<>(made);
        all.addAll(first);
        all.addAll(second);
        assertEquals(all, callsOf(arm));
    }

    private static List<String> callsOf(Arm arm) throws SQLException {
        System.setProperty("com.zaxxer.hikari.aliveBypassWindowMs", "600000");
        Database database = new Database();
        HikariConfig config = Rig.config(database);
        config.setReadOnly(true);
        config.setAutoCommit(false);
        config.setConnectionInitSql("create table t(n int)");
        try (Rig rig = new Rig(arm, database, config)) {
            try (Connection lent = rig.get();
                    PreparedStatement insert = lent.prepareStatement("insert into t values (?)")) {
                lent.setReadOnly(false);
                insert.setInt(1, 7);
                insert.execute();
                lent.setSavepoint("here");
                lent.setNetworkTimeout(Runnable::run, 99);
            }
            try (Connection lent = rig.get();
                    Statement statement = lent.createStatement()) {
                lent.getMetaData().getURL();
                statement.executeQuery("select * from t");
                lent.commit();
            }
            return database.calls();
        } finally {
            System.clearProperty("com.zaxxer.hikari.aliveBypassWindowMs");
        }
    }

    @Test
    void whatIsNotCommittedIsRolledBackWhenItIsGivenBack() throws Exception {
        config.setAutoCommit(false);
        try (Connection keeps = database.direct();
                Rig rig = rig()) {
            keeps.createStatement().execute("create table t(n int)");
            try (Connection lent = rig.get()) {
                lent.createStatement().execute("insert into t values (1)");
            }
            assertEquals(0, rows(keeps));
            try (Connection lent = rig.get()) {
                lent.createStatement().execute("insert into t values (1)");
                lent.commit();
            }
            assertEquals(1, rows(keeps));
            database.calls();
            try (Connection lent = rig.get()) {
                lent.createStatement().execute("select * from t");
                lent.commit();
            }
            assertFalse(database.calls().contains("1 rollback"), "what was committed is not rolled back");
        }
    }

    private static int rows(Connection at) throws SQLException {
        try (ResultSet rows = at.createStatement().executeQuery("select count(*) from t")) {
            rows.next();
            return rows.getInt(1);
        }
    }

    @Test
    void statementsAreClosedWithTheirConnection() throws Exception {
        try (Rig rig = rig()) {
            Connection lent = rig.get();
            Statement plain = lent.createStatement();
            PreparedStatement prepared = lent.prepareStatement("select 1");
            ResultSet rows = prepared.executeQuery();
            lent.close();
            assertTrue(plain.isClosed());
            assertTrue(prepared.isClosed());
            assertTrue(rows.isClosed());
            assertTrue(database.calls().contains("1 clearWarnings"));
            rig.use();
        }
    }

    @Test
    void whatIsConfiguredForEachConnectionIsRunOnce() throws Exception {
        config.setConnectionInitSql("create table made(n int)");
        try (Rig rig = rig()) {
            try (Connection lent = rig.get()) {
                lent.createStatement().executeQuery("select * from made").close();
            }
            rig.use();
            assertEquals(1, database.made.get());
        }
    }

    @Test
    void aConnectionThatCannotBeSetUpIsNone() throws Exception {
        config.setConnectionInitSql("this is no SQL");
        config.setInitializationFailTimeout(-1);
        config.setConnectionTimeout(Rig.SOON_MS);
        try (Rig rig = rig()) {
            Eventually.until("it was tried", () -> database.made.get() >= 1);
            SQLException thrown = assertThrows(SQLException.class, rig::get);
            assertTrue(thrown.getMessage().contains("request timed out"), thrown.getMessage());
        }
        Eventually.until("all are closed", () -> database.open() == 0);
    }

    /** SQL states of class 08 and some others mean that the connection is lost. */
    @Test
    void aConnectionThatBreaksIsReplaced() throws Exception {
        try (Rig rig = rig()) {
            Connection lent = rig.get();
            rig.breaks();
            database.fault = new SQLException("planted: broken pipe", "08006");
            SQLException thrown = assertThrows(SQLException.class, lent::createStatement);
            assertSame(database.fault, thrown);
            database.fault = null;
            assertTrue(lent.isClosed());
            Eventually.until("another", () -> rig.bean().getIdleConnections() == 1);
            lent.close();
            assertEquals("link 2", rig.use());
        }
    }

    /** If this fails, one use is reported as two: the pool gives the connection up, and then takes it back. */
    @Test
    void aConnectionThatBreaksWhileItIsGivenBackIsUsedOnce() throws Exception {
        try (Rig rig = rig()) {
            Connection lent = rig.get();
            database.fault = new SQLException("planted: broken pipe", "08006");
            assertSame(database.fault, assertThrows(SQLException.class, lent::close));
            database.fault = null;
            Eventually.until("another", () -> rig.bean().getIdleConnections() == 1);
            assertEquals("link 2", rig.use());
        }
    }

    @Test
    void aConnectionSurvivesAnErrorThatIsNotItsOwn() throws Exception {
        try (Rig rig = rig()) {
            try (Connection lent = rig.get()) {
                database.fault = new SQLException("planted: no such table", "42S02");
                assertThrows(SQLException.class, lent::createStatement);
                database.fault = new SQLTimeoutException("planted: slow query");
                assertThrows(SQLException.class, lent::createStatement);
                database.fault = null;
                assertFalse(lent.isClosed());
            }
            assertEquals("link 1", rig.use());
        }
    }

    @Test
    void anApplicationMayKnowBetterWhatBreaksAConnection() throws Exception {
        config.setExceptionOverride(new SQLExceptionOverride() {
            @java.lang.Override
            public Override adjudicate(SQLException thrown) {
                return "08006".equals(thrown.getSQLState()) ? Override.DO_NOT_EVICT : Override.MUST_EVICT;
            }
        });
        try (Rig rig = rig()) {
            Connection lent = rig.get();
            rig.breaks();
            database.fault = new SQLException("planted", "08006");
            assertThrows(SQLException.class, lent::createStatement);
            assertFalse(lent.isClosed());
            database.fault = new SQLException("planted", "42S02");
            assertThrows(SQLException.class, lent::createStatement);
            database.fault = null;
            assertTrue(lent.isClosed());
            lent.close();
            Eventually.until("another", () -> rig.bean().getIdleConnections() == 1);
            assertEquals("link 2", rig.use());
        }
    }

    @Test
    void aConnectionThatABorrowerAbortsIsReplaced() throws Exception {
        try (Rig rig = rig()) {
            Connection lent = rig.get();
            rig.evict(lent);
            Executor here = Runnable::run;
            lent.abort(here);
            lent.close();
            Eventually.until("another", () -> rig.bean().getIdleConnections() == 1);
            assertEquals("link 2", rig.use());
        }
    }

    /** Hikari knows that MySQL's driver may not have its timeouts set by another thread, by the name of its data source. */
    @Test
    void timeoutsOfMysqlAreSetByTheThreadThatAsks() throws Exception {
        MysqlDataSource mysql = new MysqlDataSource();
        try (Rig rig = new Rig(arm, mysql, Rig.config(mysql))) {
            checkRunsHere(mysql, true);
            rig.use();
        }
        try (Rig rig = rig()) {
            checkRunsHere(database, false);
            rig.use();
        }
    }

    private static void checkRunsHere(Database of, boolean isExpected) throws Exception {
        Thread[] runner = new Thread[1];
        of.timeoutExecutor.execute(() -> runner[0] = Thread.currentThread());
        Eventually.until("it has run", () -> runner[0] != null);
        assertEquals(isExpected, runner[0] == Thread.currentThread());
    }

    /** What counts is its name. */
    private static final class MysqlDataSource extends Database {}

    private Rig rig() {
        return new Rig(arm, database, config);
    }
}
