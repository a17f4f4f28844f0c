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
 * Tells of pools whose objects are known to be connections to Redis: those of Jedis, and those that Lettuce makes. Others
 * pool threads, files or clients of something else, and are left alone.
 */
public final class CommonsPool2Hook implements Hook {
    private final AtomicInteger unnamed = new AtomicInteger();
    private final PerPool<Watched> pools = new PerPool<>(pool -> watched((GenericObjectPool<?>) pool));

    /** What this thread borrows. */
    private final ThreadLocal<Borrow> now = new ThreadLocal<>();

    /** By the bridge. */
    public CommonsPool2Hook() {}

    /** @param figures null for a pool that is left alone */
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
        /** What the factory of one pool borrows of another. */
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
            case POOL2_BORROW -> borrows(figures);
            case POOL2_CREATE -> new Making(figures, System.nanoTime());
            case POOL2_RETURN, POOL2_INVALIDATE -> {
                Long lentNs = figures.back(argument);
                yield lentNs == null ? null : new Return(figures, lentNs);
            }
            default -> throw new IllegalArgumentException(point + " is not here");
        };
    }

    /** Null within a call of the same pool that does the same. */
    private Borrow borrows(RedisPool figures) {
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
            ends(borrow, returned, thrown);
        } else if (begun instanceof Making making) {
            ends(making, returned, thrown);
        } else if (begun instanceof Return back) {
            back.figures.used(back.lentNs);
        }
        return null;
    }

    private void ends(Borrow borrow, Object returned, Throwable thrown) {
        if (borrow.outer == null) {
            now.remove();
        } else {
            now.set(borrow.outer);
        }
        if (thrown == null) {
            borrow.figures.lends(returned, borrow.askedNs, borrow.madeNs);
        } else if (isTimeout(thrown)) {
            borrow.figures.timesOut(borrow.askedNs);
        } else {
            borrow.figures.fails(borrow.askedNs);
        }
    }

    /** The pool has one type for this, for a test that fails and for being exhausted at once; the words are since 2.0. */
    private static boolean isTimeout(Throwable thrown) {
        return thrown instanceof NoSuchElementException && String.valueOf(thrown.getMessage()).startsWith("Timeout");
    }

    /**
     * What returns nothing has nothing to lend: it has waited to hear that it may not make one, or the pool refused what it
     * made ({@code testOnCreate}). How long either took stays in the wait.
     */
    private void ends(Making making, Object returned, Throwable thrown) {
        long ns = System.nanoTime() - making.begunNs;
        if (thrown != null) {
            making.figures.notMade(ns);
        } else if (returned != null) {
            making.figures.made(ns);
            Borrow borrow = now.get();
            if (borrow != null && borrow.figures == making.figures) {
                borrow.madeNs += ns;
            }
        }
    }

    private Watched watched(GenericObjectPool<?> pool) {
        String kind = kind(pool.getClass());
        if (kind == null) {
            // Up to version 3 a pool of Jedis contains a plain one.
            kind = kind(pool.getFactory().getClass());
        }
        RedisPool figures =
                kind == null ? null : new RedisPool(pools.label(kind + "-" + name(pool)), Series.DB_WAIT_APART);
        return new Watched(figures, new WeakReference<>(pool));
    }

    /** Of the library that the class of a pool or its factory is of; null for one of neither. */
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

    /** As in JMX, where the application may name it; else a number. */
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
