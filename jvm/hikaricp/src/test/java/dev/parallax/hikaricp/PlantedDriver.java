package dev.parallax.hikaricp;

import java.io.PrintWriter;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.logging.Logger;
import javax.sql.DataSource;
import org.h2.jdbcx.JdbcDataSource;

/** H2 in memory, with planted delays and failures in making and testing a connection. */
final class PlantedDriver implements DataSource {
    final JdbcDataSource h2 = new JdbcDataSource();
    final AtomicInteger made = new AtomicInteger();
    volatile int makeMs;
    volatile int testMs;
    volatile boolean isDown;
    volatile boolean isDead;

    PlantedDriver() {
        h2.setURL("jdbc:h2:mem:");
    }

    @Override
    public Connection getConnection() throws SQLException {
        sleep(makeMs);
        if (isDown) {
            throw new SQLException("planted: the database is down");
        }
        made.incrementAndGet();
        Connection connection = h2.getConnection();
        InvocationHandler handler = (proxy, method, arguments) -> {
            if (method.getName().equals("isValid")) {
                sleep(testMs);
                return !isDead;
            }
            try {
                return method.invoke(connection, arguments);
            } catch (InvocationTargetException e) {
                throw e.getCause();
            }
        };
        return (Connection) Proxy.newProxyInstance(
                PlantedDriver.class.getClassLoader(), new Class<?>[] {Connection.class}, handler);
    }

    static void sleep(int ms) {
        long endNs = System.nanoTime() + ms * 1_000_000L;
        for (long left = ms * 1_000_000L; left > 0; left = endNs - System.nanoTime()) {
            LockSupport.parkNanos(left);
        }
    }

    @Override
    public Connection getConnection(String user, String password) throws SQLException {
        return getConnection();
    }

    @Override
    public PrintWriter getLogWriter() {
        return null;
    }

    @Override
    public void setLogWriter(PrintWriter out) {}

    @Override
    public void setLoginTimeout(int seconds) {}

    @Override
    public int getLoginTimeout() {
        return 0;
    }

    @Override
    public Logger getParentLogger() {
        return Logger.getGlobal();
    }

    @Override
    public <T> T unwrap(Class<T> type) {
        return type.cast(h2);
    }

    @Override
    public boolean isWrapperFor(Class<?> type) {
        return type.isInstance(h2);
    }
}
