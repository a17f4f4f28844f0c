package dev.parallax.agent.tests;

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.support.AsyncConnectionPoolSupport;
import io.lettuce.core.support.BoundedAsyncPool;
import io.lettuce.core.support.BoundedPoolConfig;
import io.lettuce.core.support.ConnectionPoolSupport;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.apache.commons.pool2.impl.GenericObjectPool;
import org.apache.commons.pool2.impl.GenericObjectPoolConfig;
import redis.clients.jedis.Connection;
import redis.clients.jedis.ConnectionFactory;
import redis.clients.jedis.ConnectionPool;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Protocol;

/**
 * An application with a pool of two connections to Redis. Arguments: which pool, the server's port. A caller with a
 * connection sets one key. For each use it prints when the connection was requested and lent, and when its return began
 * and ended, in nanoseconds.
 */
public final class RedisApplication {
    static final int KEEP_MS = 300;
    static final int PATIENCE_MS = 50;
    private static final int CONNECTIONS = 2;

    private final Pool pool;

    /** A connection that is lent. */
    private interface Lent {
        void set() throws Exception;

        void giveBack() throws Exception;
    }

    private interface Borrowing {
        Lent borrow() throws Exception;
    }

    /** @param own null for a pool in which no caller waits */
    private record Pool(Borrowing borrowing, GenericObjectPool<?> own) {}

    private RedisApplication(Pool pool) {
        this.pool = pool;
    }

    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(arguments[1]);
        if (arguments[0].equals("jedis")) {
            HostAndPort server = new HostAndPort("localhost", port);
            try (ConnectionPool own =
                    new ConnectionPool(server, DefaultJedisClientConfig.builder().build(), config())) {
                new RedisApplication(new Pool(() -> lent(own.getResource(), Connection::close), own)).runs();
            }
            return;
        }
        if (arguments[0].equals("jedis-plain")) {
            ConnectionFactory factory = new ConnectionFactory(new HostAndPort("localhost", port));
            try (GenericObjectPool<Connection> own = new GenericObjectPool<>(factory, config())) {
                new RedisApplication(new Pool(() -> lent(own.borrowObject(), own::returnObject), own)).runs();
            }
            return;
        }
        RedisURI uri = RedisURI.create("localhost", port);
        RedisClient client = RedisClient.create(uri);
        try {
            if (arguments[0].equals("lettuce")) {
                try (GenericObjectPool<StatefulRedisConnection<String, String>> own = ConnectionPoolSupport
                        .createGenericObjectPool(client::connect, config())) {
                    new RedisApplication(new Pool(() -> lent(own.borrowObject()), own)).runs();
                }
            } else {
                BoundedAsyncPool<StatefulRedisConnection<String, String>> own =
                        AsyncConnectionPoolSupport.createBoundedObjectPool(
                                () -> client.connectAsync(StringCodec.UTF8, uri),
                                BoundedPoolConfig.builder().maxTotal(CONNECTIONS).build());
                new RedisApplication(new Pool(() -> lent(own.acquire().get()), null)).runsWithoutWaiting();
                own.close();
            }
        } finally {
            client.shutdown(Duration.ZERO, Duration.ofSeconds(5));
        }
    }

    private static <T> GenericObjectPoolConfig<T> config() {
        GenericObjectPoolConfig<T> config = new GenericObjectPoolConfig<>();
        config.setMaxTotal(CONNECTIONS);
        config.setJmxNamePrefix("orders");
        return config;
    }

    private static Lent lent(Connection connection, Consumer<Connection> back) {
        return new Lent() {
            @Override
            public void set() {
                connection.sendCommand(Protocol.Command.SET, "key", "value");
                connection.getStatusCodeReply();
            }

            @Override
            public void giveBack() {
                back.accept(connection);
            }
        };
    }

    private static Lent lent(StatefulRedisConnection<String, String> connection) {
        return new Lent() {
            @Override
            public void set() {
                connection.sync().set("key", "value");
            }

            @Override
            public void giveBack() throws Exception {
                connection.closeAsync().get();
            }
        };
    }

    /** A lent connection, with the caller's own timestamps. */
    private static final class Use {
        private final long askedNs = System.nanoTime();
        private final Lent lent;
        private final long gotNs;

        Use(Borrowing pool) throws Exception {
            lent = pool.borrow();
            gotNs = System.nanoTime();
            lent.set();
        }

        void ends() throws Exception {
            long endsNs = System.nanoTime();
            lent.giveBack();
            System.out.println("use=" + askedNs + "," + gotNs + "," + endsNs + "," + System.nanoTime());
        }
    }

    /** Two keep a connection for a while once two others wait for one. Then two have one, and a third gives up. */
    private void runs() throws Exception {
        ExecutorService threads = Executors.newCachedThreadPool();
        CountDownLatch lent = new CountDownLatch(CONNECTIONS);
        List<Future<?>> all = new ArrayList<>();
        for (int i = 0; i < CONNECTIONS; i++) {
            all.add(threads.submit(() -> {
                Use use = new Use(pool.borrowing);
                lent.countDown();
                awaitWaiters();
                Thread.sleep(KEEP_MS);
                use.ends();
                return null;
            }));
        }
        lent.await();
        for (int i = 0; i < CONNECTIONS; i++) {
            all.add(threads.submit(() -> {
                new Use(pool.borrowing).ends();
                return null;
            }));
        }
        for (Future<?> one : all) {
            one.get();
        }
        threads.shutdown();
        pool.own.setMaxWait(Duration.ofMillis(PATIENCE_MS));
        failsWhenAllAreLent();
    }

    private void awaitWaiters() throws InterruptedException {
        long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
        while (pool.own.getNumWaiters() < CONNECTIONS) {
            if (System.nanoTime() - endNs > 0) {
                throw new IllegalStateException("nobody waits");
            }
            Thread.sleep(1);
        }
    }

    private void runsWithoutWaiting() throws Exception {
        failsWhenAllAreLent();
        failsWhenAllAreLent();
    }

    private void failsWhenAllAreLent() throws Exception {
        List<Use> all = new ArrayList<>();
        for (int i = 0; i < CONNECTIONS; i++) {
            all.add(new Use(pool.borrowing));
        }
        boolean hasThird = true;
        try {
            pool.borrowing.borrow();
        } catch (ExecutionException | RuntimeException expected) {
            hasThird = false;
        }
        if (hasThird) {
            throw new IllegalStateException("a third connection of two");
        }
        Thread.sleep(KEEP_MS);
        for (Use one : all) {
            one.ends();
        }
    }
}
