package dev.parallax.agent.tests;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import com.zaxxer.hikari.metrics.IMetricsTracker;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * An application with a pool of two and four callers who keep a connection for a while, and with a tracker of its own that
 * comes when the pool has started. Prints what that was told.
 */
public final class PoolApplication {
    static final int KEEP_MS = 300;
    private static final int CALLERS = 4;

    private PoolApplication() {}

    public static void main(String[] arguments) throws Exception {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl("jdbc:h2:mem:planted");
        config.setMaximumPoolSize(2);
        config.setPoolName("orders");
        try (HikariDataSource pool = new HikariDataSource(config)) {
            try (Connection first = pool.getConnection();
                    Connection second = pool.getConnection()) {
                if (!first.getClass().getName().startsWith("com.zaxxer.hikari") || first == second) {
                    throw new IllegalStateException("not the pool's own connection: " + first.getClass());
                }
            }
            Counting counting = new Counting();
            pool.setMetricsTrackerFactory((name, stats) -> counting);
            ExecutorService threads = Executors.newFixedThreadPool(CALLERS);
            List<Future<?>> all = new ArrayList<>();
            for (int i = 0; i < CALLERS; i++) {
                all.add(threads.submit(() -> keep(pool)));
            }
            for (Future<?> one : all) {
                one.get();
            }
            threads.shutdown();
            System.out.println("acquired=" + counting.acquired.get());
            System.out.println("used=" + counting.used.get());
        }
    }

    private static Void keep(HikariDataSource pool) throws SQLException, InterruptedException {
        try (Connection connection = pool.getConnection()) {
            if (!connection.isValid(1)) {
                throw new SQLException("dead");
            }
            Thread.sleep(KEEP_MS);
        }
        return null;
    }

    static final class Counting implements IMetricsTracker {
        private final AtomicInteger acquired = new AtomicInteger();
        private final AtomicInteger used = new AtomicInteger();

        @Override
        public void recordConnectionAcquiredNanos(long ns) {
            acquired.incrementAndGet();
        }

        @Override
        public void recordConnectionUsageMillis(long ms) {
            used.incrementAndGet();
        }
    }
}
