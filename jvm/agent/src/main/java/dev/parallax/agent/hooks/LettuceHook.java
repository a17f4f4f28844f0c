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
 * Tells of Lettuce's asynchronous pool. It has nobody wait for a connection that is lent: who comes too many fails at once.
 *
 * <p>The future that the pool hands out stays its own: the pool asks it whether the caller has lost interest.
 */
public final class LettuceHook implements Hook {
    private final AtomicInteger number = new AtomicInteger();
    private final PerPool<Watched> pools = new PerPool<>(pool -> watched((BoundedAsyncPool<?>) pool));

    /** When each connection was asked for that is not there yet, by the caller's future. */
    private final Moments asked = new Moments();

    /** By the bridge. */
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
            case LETTUCE_ACQUIRE -> asks(figures, (CompletableFuture<?>) argument);
            case LETTUCE_LEND -> {
                Object[] both = (Object[]) argument;
                Long askedNs = asked.take(both[0]);
                // Nobody has what is offered to who has lost interest.
                if (askedNs != null && !((CompletableFuture<?>) both[0]).isDone()) {
                    figures.lends(both[1], askedNs, 0);
                }
            }
            case LETTUCE_RELEASE -> {
                Long lentNs = figures.back(argument);
                return lentNs == null ? null : new Return(figures, lentNs);
            }
            default -> throw new IllegalArgumentException(point + " is not here");
        }
        return null;
    }

    /** The pool asks itself once more for the same caller when a connection fails its test. */
    private void asks(RedisPool figures, CompletableFuture<?> caller) {
        long nowNs = System.nanoTime();
        if (asked.putFirst(caller, nowNs)) {
            caller.whenComplete((connection, thrown) -> {
                Long askedNs = thrown == null ? null : asked.take(caller);
                if (askedNs != null) {
                    figures.fails(askedNs);
                }
            });
        }
    }

    /** Giving back may go on after this. */
    @Override
    public Object left(Point point, Object begun, Object returned, Throwable thrown) {
        Return back = (Return) begun;
        back.figures.used(back.lentNs);
        return null;
    }

    @Override
    public void read(Reader reader) {
        pools.read(reader);
    }
}
