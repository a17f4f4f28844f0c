package dev.parallax.hikaricp;

import java.io.PrintWriter;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.sql.Statement;
import java.util.concurrent.Executor;
import java.util.logging.Logger;
import javax.sql.DataSource;

/** Sits between the pool and the driver: times the creation and the test of connections. */
class DriverSource implements DataSource {
    private final DataSource delegate;
    private final PoolMetrics metrics;

    private DriverSource(DataSource delegate, PoolMetrics metrics) {
        this.delegate = delegate;
        this.metrics = metrics;
    }

    static DriverSource of(DataSource delegate, PoolMetrics metrics) {
        return delegate.getClass().getName().contains("Mysql") ? new Mysql(delegate, metrics) : new DriverSource(delegate, metrics);
    }

    /**
     * A data source with this word in its class name is known to the pool as one whose timeouts may not be set by
     * another thread, so the wrapper must carry it too.
     */
    private static final class Mysql extends DriverSource {
        Mysql(DataSource delegate, PoolMetrics metrics) {
            super(delegate, metrics);
        }
    }

    @Override
    public Connection getConnection() throws SQLException {
        return created(delegate::getConnection);
    }

    @Override
    public Connection getConnection(String user, String password) throws SQLException {
        return created(() -> delegate.getConnection(user, password));
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
        return delegate.getLogWriter();
    }

    @Override
    public void setLogWriter(PrintWriter writer) throws SQLException {
        delegate.setLogWriter(writer);
    }

    @Override
    public void setLoginTimeout(int seconds) throws SQLException {
        delegate.setLoginTimeout(seconds);
    }

    @Override
    public int getLoginTimeout() throws SQLException {
        return delegate.getLoginTimeout();
    }

    @Override
    public Logger getParentLogger() throws SQLFeatureNotSupportedException {
        return delegate.getParentLogger();
    }

    @Override
    public <T> T unwrap(Class<T> type) throws SQLException {
        return type.isInstance(this) ? type.cast(this) : type.isInstance(delegate) ? type.cast(delegate) : delegate.unwrap(type);
    }

    @Override
    public boolean isWrapperFor(Class<?> type) throws SQLException {
        return type.isInstance(this) || type.isInstance(delegate) || delegate.isWrapperFor(type);
    }

    /**
     * Times the calls of which the pool's connection test consists. Outside a borrow they are passed on like any other.
     */
    private static final class DriverConnection extends DelegatingConnection {
        DriverConnection(Connection delegate) {
            super(delegate);
        }

        @Override
        public void setNetworkTimeout(Executor executor, int ms) throws SQLException {
            test(() -> {
                delegate.setNetworkTimeout(executor, ms);
                return null;
            });
        }

        @Override
        public boolean isValid(int seconds) throws SQLException {
            return test(() -> delegate.isValid(seconds));
        }

        @Override
        public Statement createStatement() throws SQLException {
            return test(delegate::createStatement);
        }

        @Override
        public void rollback() throws SQLException {
            test(() -> {
                delegate.rollback();
                return null;
            });
        }

        private <T> T test(Step<T> step) throws SQLException {
            Borrow borrow = Borrow.current();
            if (borrow == null) {
                return step.run();
            }
            borrow.startTest(this);
            try {
                return step.run();
            } finally {
                borrow.endTest();
            }
        }

        private interface Step<T> {
            T run() throws SQLException;
        }
    }
}
