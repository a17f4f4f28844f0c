package dev.parallax.agent.hooks;

import dev.parallax.agent.instrument.Hook;
import dev.parallax.agent.instrument.Point;
import dev.parallax.agent.report.Reader;
import dev.parallax.agent.report.Series;
import dev.parallax.agent.report.Source;
import java.lang.ref.WeakReference;
import java.util.NoSuchElementException;
import java.util.concurrent.atomic.AtomicInteger;
import javax.management.ObjectName;
import org.apache.commons.pool2.impl.GenericObjectPool;

/**
 * Measures pools known to hold Redis connections: those of Jedis, and those created by Lettuce. Pools of threads, files
 * or other clients are ignored.
 */
public final class CommonsPool2Hook implements Hook {
    private final AtomicInteger unnamed = new AtomicInteger();
    private final PerPool<Watched> pools = new PerPool<>(pool -> watched((GenericObjectPool<?>) pool));

    /** The borrow in progress on this thread. */
    private final ThreadLocal<Borrow> now = new ThreadLocal<>();

    /** Called by the bridge. */
    public CommonsPool2Hook() {}

    /** @param figures null for an ignored pool */
    private record Watched(RedisPool figures, WeakReference<GenericObjectPool<?>> reference) implements Source {
        @Override
        public void read(Reader reader) {
            if (figures == null) {
                return;
            }
            figures.read(reader);
            GenericObjectPool<?> pool = reference.get();
            if (pool != null) {
                reader.number(Series.DB_PENDING, figures.name(), pool.getNumWaiters());
                reader.number(Series.DB_USED, figures.name(), pool.getNumActive());
                reader.number(Series.DB_IDLE, figures.name(), pool.getNumIdle());
            }
        }
    }

    private static final class Borrow {
        final RedisPool figures;
        final long askedNs = System.nanoTime();
        /** Set if the factory of one pool borrows from another. */
        final Borrow outer;

        long madeNs;

        Borrow(RedisPool figures, Borrow outer) {
            this.figures = figures;
            this.outer = outer;
        }
    }

    private record Making(RedisPool figures, long begunNs) {}

    private record Return(RedisPool figures, long lentNs) {}

    @Override
    public Object entered(Point point, Object self, Object argument) {
        RedisPool figures = pools.of(self).figures;
        if (figures == null) {
            return null;
        }
        return switch (point) {
            case POOL2_BORROW -> startBorrow(figures);
            case POOL2_CREATE -> new Making(figures, System.nanoTime());
            case POOL2_RETURN, POOL2_INVALIDATE -> {
                Long lentNs = figures.takeLentNs(argument);
                yield lentNs == null ? null : new Return(figures, lentNs);
            }
            default -> throw new IllegalArgumentException(point + " is not a place of this hook");
        };
    }

    /** Returns null for a nested call on the same pool. */
    private Borrow startBorrow(RedisPool figures) {
        Borrow outer = now.get();
        if (outer != null && outer.figures == figures) {
            return null;
        }
        Borrow borrow = new Borrow(figures, outer);
        now.set(borrow);
        return borrow;
    }

    @Override
    public Object left(Point point, Object begun, Object returned, Throwable thrown) {
        if (begun instanceof Borrow borrow) {
            end(borrow, returned, thrown);
        } else if (begun instanceof Making making) {
            end(making, returned, thrown);
        } else if (begun instanceof Return back) {
            back.figures.recordUse(back.lentNs);
        }
        return null;
    }

    private void end(Borrow borrow, Object returned, Throwable thrown) {
        if (borrow.outer == null) {
            now.remove();
        } else {
            now.set(borrow.outer);
        }
        if (thrown == null) {
            borrow.figures.recordLent(returned, borrow.askedNs, borrow.madeNs);
        } else if (isTimeout(thrown)) {
            borrow.figures.recordTimeout(borrow.askedNs);
        } else {
            borrow.figures.recordFailure(borrow.askedNs);
        }
    }

    /**
     * The pool throws one type for timeouts, failed tests and immediate exhaustion; the message has been the same since
     * 2.0.
     */
    private static boolean isTimeout(Throwable thrown) {
        return thrown instanceof NoSuchElementException && String.valueOf(thrown.getMessage()).startsWith("Timeout");
    }

    /**
     * A call that returns nothing has created nothing: it waited only to learn that the pool is full, or the pool
     * rejected the new object ({@code testOnCreate}). That time stays part of the wait.
     */
    private void end(Making making, Object returned, Throwable thrown) {
        long ns = System.nanoTime() - making.begunNs;
        if (thrown != null) {
            making.figures.recordCreateFailure(ns);
        } else if (returned != null) {
            making.figures.recordCreated(ns);
            Borrow borrow = now.get();
            if (borrow != null && borrow.figures == making.figures) {
                borrow.madeNs += ns;
            }
        }
    }

    private Watched watched(GenericObjectPool<?> pool) {
        String kind = kind(pool.getClass());
        if (kind == null) {
            // Up to version 3 a Jedis pool contains a plain one.
            kind = kind(pool.getFactory().getClass());
        }
        RedisPool figures =
                kind == null ? null : new RedisPool(pools.label(kind + "-" + name(pool)), Series.DB_WAIT_APART);
        return new Watched(figures, new WeakReference<>(pool));
    }

    /** The library of the pool's or factory's class; null if it is neither. */
    private static String kind(Class<?> type) {
        for (Class<?> one = type; one != null; one = one.getSuperclass()) {
            if (one.getName().startsWith("redis.clients.jedis.")) {
                return "jedis";
            }
            if (one.getName().startsWith("io.lettuce.core.")) {
                return "lettuce";
            }
        }
        return null;
    }

    /** The JMX name, which the application can set; otherwise a number. */
    private String name(GenericObjectPool<?> pool) {
        ObjectName name = pool.getJmxName();
        String key = name == null ? null : name.getKeyProperty("name");
        return key == null ? Integer.toString(unnamed.incrementAndGet()) : key;
    }

    @Override
    public void read(Reader reader) {
        pools.read(reader);
    }
}
