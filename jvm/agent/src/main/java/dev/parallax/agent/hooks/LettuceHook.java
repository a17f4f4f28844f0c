package dev.parallax.agent.hooks;

import dev.parallax.agent.instrument.Hook;
import dev.parallax.agent.instrument.Point;
import dev.parallax.agent.report.Reader;
import dev.parallax.agent.report.Series;
import dev.parallax.agent.report.Source;
import io.lettuce.core.support.BoundedAsyncPool;
import java.lang.ref.WeakReference;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Measures Lettuce's asynchronous pool. It never waits for a connection in use: when all are, a request fails
 * immediately.
 *
 * <p>The future that the pool returns is left as it is, because the pool checks whether its caller has cancelled it.
 */
public final class LettuceHook implements Hook {
    private final AtomicInteger number = new AtomicInteger();
    private final PerPool<Watched> pools = new PerPool<>(pool -> watched((BoundedAsyncPool<?>) pool));

    /** When each connection still being created was requested, by the caller's future. */
    private final Moments asked = new Moments();

    /** Called by the bridge. */
    public LettuceHook() {}

    private record Watched(RedisPool figures, WeakReference<BoundedAsyncPool<?>> reference) implements Source {
        @Override
        public void read(Reader reader) {
            figures.read(reader);
            BoundedAsyncPool<?> pool = reference.get();
            if (pool != null) {
                int idle = pool.getIdle();
                reader.number(Series.DB_USED, figures.name(), Math.max(0, pool.getObjectCount() - idle));
                reader.number(Series.DB_IDLE, figures.name(), idle);
            }
        }
    }

    private record Return(RedisPool figures, long lentNs) {}

    private Watched watched(BoundedAsyncPool<?> pool) {
        String name = pools.label("lettuce-async-" + number.incrementAndGet());
        return new Watched(new RedisPool(name, Series.DB_WAIT_MADE), new WeakReference<>(pool));
    }

    @Override
    public Object entered(Point point, Object self, Object argument) {
        RedisPool figures = pools.of(self).figures;
        switch (point) {
            case LETTUCE_ACQUIRE -> startAcquire(figures, (CompletableFuture<?>) argument);
            case LETTUCE_LEND -> {
                Object[] both = (Object[]) argument;
                Long askedNs = asked.take(both[0]);
                // If the caller cancelled, the connection goes to nobody.
                if (askedNs != null && !((CompletableFuture<?>) both[0]).isDone()) {
                    figures.recordLent(both[1], askedNs, 0);
                }
            }
            case LETTUCE_RELEASE -> {
                Long lentNs = figures.takeLentNs(argument);
                return lentNs == null ? null : new Return(figures, lentNs);
            }
            default -> throw new IllegalArgumentException(point + " is not a place of this hook");
        }
        return null;
    }

    /** The pool repeats the request for the same caller when a connection fails its test. */
    private void startAcquire(RedisPool figures, CompletableFuture<?> caller) {
        long nowNs = System.nanoTime();
        if (asked.putFirst(caller, nowNs)) {
            caller.whenComplete((connection, thrown) -> {
                Long askedNs = thrown == null ? null : asked.take(caller);
                if (askedNs != null) {
                    figures.recordFailure(askedNs);
                }
            });
        }
    }

    /** The return may continue after this. */
    @Override
    public Object left(Point point, Object begun, Object returned, Throwable thrown) {
        Return back = (Return) begun;
        back.figures.recordUse(back.lentNs);
        return null;
    }

    @Override
    public void read(Reader reader) {
        pools.read(reader);
    }
}
