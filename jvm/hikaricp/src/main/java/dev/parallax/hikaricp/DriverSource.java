package dev.parallax.hikaricp;

import java.io.PrintWriter;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.sql.Statement;
import java.util.concurrent.Executor;
import java.util.logging.Logger;
import javax.sql.DataSource;

/** Between the pool and the driver: what making a connection takes, and testing one. */
class DriverSource implements DataSource {
    private final DataSource to;
    private final PoolMetrics metrics;

    private DriverSource(DataSource to, PoolMetrics metrics) {
        this.to = to;
        this.metrics = metrics;
    }

    static DriverSource of(DataSource to, PoolMetrics metrics) {
        return to.getClass().getName().contains("Mysql") ? new Mysql(to, metrics) : new DriverSource(to, metrics);
    }

    /**
     * By this word in the name of its class the pool knows the data source of a driver that may not have its timeouts set by
     * another thread.
     */
    private static final class Mysql extends DriverSource {
        Mysql(DataSource to, PoolMetrics metrics) {
            super(to, metrics);
        }
    }

    @Override
    public Connection getConnection() throws SQLException {
        return created(to::getConnection);
    }

    @Override
    public Connection getConnection(String user, String password) throws SQLException {
        return created(() -> to.getConnection(user, password));
    }

    private Connection created(Creation creation) throws SQLException {
        long begunNs = System.nanoTime();
        Connection made;
        try {
            made = creation.run();
        } catch (Throwable thrown) {
            metrics.failedCreations().recordSince(begunNs);
            throw thrown;
        }
        metrics.creations().recordSince(begunNs);
        return made == null ? null : new DriverConnection(made);
    }

    private interface Creation {
        Connection run() throws SQLException;
    }

    @Override
    public PrintWriter getLogWriter() throws SQLException {
        return to.getLogWriter();
    }

    @Override
    public void setLogWriter(PrintWriter writer) throws SQLException {
        to.setLogWriter(writer);
    }

    @Override
    public void setLoginTimeout(int seconds) throws SQLException {
        to.setLoginTimeout(seconds);
    }

    @Override
    public int getLoginTimeout() throws SQLException {
        return to.getLoginTimeout();
    }

    @Override
    public Logger getParentLogger() throws SQLFeatureNotSupportedException {
        return to.getParentLogger();
    }

    @Override
    public <T> T unwrap(Class<T> type) throws SQLException {
        return type.isInstance(this) ? type.cast(this) : type.isInstance(to) ? type.cast(to) : to.unwrap(type);
    }

    @Override
    public boolean isWrapperFor(Class<?> type) throws SQLException {
        return type.isInstance(this) || type.isInstance(to) || to.isWrapperFor(type);
    }

    /** The calls of which the pool's test of a connection consists. From elsewhere they are passed on as all others are. */
    private static final class DriverConnection extends PassingConnection {
        DriverConnection(Connection to) {
            super(to);
        }

        @Override
        public void setNetworkTimeout(Executor executor, int ms) throws SQLException {
            test(() -> {
                to.setNetworkTimeout(executor, ms);
                return null;
            });
        }

        @Override
        public boolean isValid(int seconds) throws SQLException {
            return test(() -> to.isValid(seconds));
        }

        @Override
        public Statement createStatement() throws SQLException {
            return test(to::createStatement);
        }

        @Override
        public void rollback() throws SQLException {
            test(() -> {
                to.rollback();
                return null;
            });
        }

        private <T> T test(Step<T> step) throws SQLException {
            Borrow borrow = Borrow.now();
            if (borrow == null) {
                return step.run();
            }
            borrow.tests(this);
            try {
                return step.run();
            } finally {
                borrow.tested();
            }
        }

        private interface Step<T> {
            T run() throws SQLException;
        }
    }
}
