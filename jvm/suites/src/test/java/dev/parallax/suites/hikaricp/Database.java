package dev.parallax.suites.hikaricp;

import java.io.PrintWriter;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Logger;
import javax.sql.DataSource;
import org.h2.jdbcx.JdbcDataSource;

/** H2 in memory, behind a layer that counts, records the calls, and fails on request. */
class Database implements DataSource {
    private static final AtomicInteger DATABASES = new AtomicInteger();

    final AtomicInteger made = new AtomicInteger();
    final AtomicInteger refused = new AtomicInteger();
    final AtomicInteger closed = new AtomicInteger();
    volatile boolean isDown;
    volatile boolean isDead;

    /** Thrown when a statement is created, and when the pool resets a returned connection; null for nothing. */
    volatile SQLException fault;

    /** The executor that the last {@code setNetworkTimeout} was given. */
    volatile Executor timeoutExecutor;

    private volatile int loginTimeout;
    private final JdbcDataSource h2 = new JdbcDataSource();
    private final List<String> calls = Collections.synchronizedList(new ArrayList<>());

    Database() {
        h2.setURL("jdbc:h2:mem:suite" + DATABASES.incrementAndGet());
    }

    /** Not by the pool, and not counted. */
    Connection direct() throws SQLException {
        return h2.getConnection();
    }

    /** The calls of the pool and its borrowers to connections since the last time, in order. */
    List<String> calls() {
        synchronized (calls) {
            List<String> copy = List.copyOf(calls);
            calls.clear();
            return copy;
        }
    }

    /** How many are open now. */
    int open() {
        return made.get() - closed.get();
    }

    @Override
    public Connection getConnection() throws SQLException {
        if (isDown) {
            refused.incrementAndGet();
            throw new SQLException("planted: the database is down");
        }
        Link link = new Link(h2.getConnection(), made.incrementAndGet());
        return (Connection)
                Proxy.newProxyInstance(Database.class.getClassLoader(), new Class<?>[] {Connection.class}, link);
    }

    /** A connection, with its own state for what H2 does not support. */
    private final class Link implements InvocationHandler {
        private final Connection to;
        private final int number;
        private final Map<String, Object> state = new HashMap<>(Map.of(
                "ReadOnly", false,
                "Catalog", "main",
                "Schema", "public",
                "NetworkTimeout", 0,
                "TransactionIsolation", Connection.TRANSACTION_READ_COMMITTED));

        Link(Connection to, int number) {
            this.to = to;
            this.number = number;
        }

        @Override
        public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
            String name = method.getName();
            switch (name) {
                case "toString":
                    return "link " + number;
                case "hashCode":
                    return number;
                case "equals":
                    return proxy == arguments[0];
                default:
                    calls.add(number + " " + name + text(arguments));
            }
            String property = name.replaceFirst("^(is|get|set)", "");
            if (name.equals("setNetworkTimeout")) {
                timeoutExecutor = (Executor) arguments[0];
                state.put(property, arguments[1]);
                return null;
            }
            if (state.containsKey(property)) {
                return name.startsWith("set") ? keep(property, arguments[0]) : state.get(property);
            }
            switch (name) {
                case "isValid":
                    return !isDead;
                case "close", "abort":
                    closed.incrementAndGet();
                    to.close();
                    return null;
                case "createStatement", "prepareStatement", "clearWarnings":
                    if (fault != null) {
                        throw fault;
                    }
                    break;
                default:
            }
            try {
                return method.invoke(to, arguments);
            } catch (InvocationTargetException e) {
                throw e.getCause();
            }
        }

        private Object keep(String property, Object value) {
            state.put(property, value);
            return null;
        }

        private static String text(Object[] arguments) {
            StringBuilder text = new StringBuilder();
            for (Object argument : arguments == null ? new Object[0] : arguments) {
                boolean isPlain = argument instanceof String || argument instanceof Number || argument instanceof Boolean;
                text.append(' ').append(isPlain ? argument : "...");
            }
            return text.toString();
        }
    }

    @Override
    public Connection getConnection(String user, String password) throws SQLException {
        calls.add("as " + user + " " + password);
        return getConnection();
    }

    @Override
    public PrintWriter getLogWriter() {
        return null;
    }

    @Override
    public void setLogWriter(PrintWriter out) {}

    @Override
    public void setLoginTimeout(int seconds) {
        calls.add("login within " + seconds);
        loginTimeout = seconds;
    }

    /** A pool that closes waits for as long for connections that are being made: so all are counted then. */
    @Override
    public int getLoginTimeout() {
        return loginTimeout;
    }

    @Override
    public Logger getParentLogger() {
        return Logger.getGlobal();
    }

    @Override
    public <T> T unwrap(Class<T> type) throws SQLException {
        if (!type.isInstance(h2)) {
            throw new SQLException("planted: no " + type);
        }
        return type.cast(h2);
    }

    @Override
    public boolean isWrapperFor(Class<?> type) {
        return type.isInstance(h2);
    }
}
