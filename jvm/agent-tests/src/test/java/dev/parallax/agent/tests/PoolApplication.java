package dev.parallax.agent.tests;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import com.zaxxer.hikari.metrics.IMetricsTracker;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * An application with a pool of two connections, and with its own tracker that is set after the pool has started. For
 * each use it prints how long the caller waited, how long it took from request to return, in nanoseconds, and what the
 * tracker received.
 */
public final class PoolApplication {
    static final int KEEP_MS = 300;
    private static final int CONNECTIONS = 2;

    private PoolApplication() {}

    public static void main(String[] arguments) throws Exception {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl("jdbc:h2:mem:planted");
        config.setMaximumPoolSize(CONNECTIONS);
        config.setPoolName("orders");
        try (HikariDataSource pool = new HikariDataSource(config)) {
            Use first = new Use(pool);
            Use second = new Use(pool);
            if (!first.lent.getClass().getName().startsWith("com.zaxxer.hikari") || first.lent == second.lent) {
                throw new IllegalStateException("not the pool's own connection: " + first.lent.getClass());
            }
            first.ends();
            second.ends();
            Counting counting = new Counting();
            pool.setMetricsTrackerFactory((name, stats) -> counting);
            runs(pool);
            System.out.println("acquired=" + counting.acquired.get());
            System.out.println("used=" + counting.used.get());
        }
    }

    /** Two keep a connection for a while once two others wait for one, who then keep it for as long. */
    private static void runs(HikariDataSource pool) throws Exception {
        ExecutorService threads = Executors.newCachedThreadPool();
        CountDownLatch lent = new CountDownLatch(CONNECTIONS);
        List<Future<?>> all = new ArrayList<>();
        for (int i = 0; i < CONNECTIONS; i++) {
            all.add(threads.submit(() -> {
                Use use = new Use(pool);
                lent.countDown();
                awaitWaiters(pool);
                return keep(use);
            }));
        }
        lent.await();
        for (int i = 0; i < CONNECTIONS; i++) {
            all.add(threads.submit(() -> keep(new Use(pool))));
        }
        for (Future<?> one : all) {
            one.get();
        }
        threads.shutdown();
    }

    private static void awaitWaiters(HikariDataSource pool) throws InterruptedException {
        long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
        while (pool.getHikariPoolMXBean().getThreadsAwaitingConnection() < CONNECTIONS) {
            if (System.nanoTime() - endNs > 0) {
                throw new IllegalStateException("nobody waits");
            }
            Thread.sleep(1);
        }
    }

    private static Void keep(Use use) throws SQLException, InterruptedException {
        if (!use.lent.isValid(1)) {
            throw new SQLException("dead");
        }
        Thread.sleep(KEEP_MS);
        use.ends();
        return null;
    }

    /** A lent connection, with the caller's own timestamps. */
    private static final class Use {
        private final long askedNs = System.nanoTime();
        private final Connection lent;
        private final long gotNs;

        Use(HikariDataSource pool) throws SQLException {
            lent = pool.getConnection();
            gotNs = System.nanoTime();
        }

        void ends() throws SQLException {
            lent.close();
            System.out.println("use=" + (gotNs - askedNs) + "," + (System.nanoTime() - askedNs));
        }
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
