package dev.parallax.agent.hooks;

import com.zaxxer.hikari.metrics.MetricsTrackerFactory;
import com.zaxxer.hikari.pool.HikariPool;
import dev.parallax.agent.instrument.Hook;
import dev.parallax.agent.instrument.Point;
import dev.parallax.agent.report.Reader;
import dev.parallax.agent.report.Series;
import dev.parallax.hikaricp.PoolMetrics;
import dev.parallax.hikaricp.PoolProbe;
import dev.parallax.recorder.Durations;
import dev.parallax.recorder.Labelled;
import java.lang.ref.WeakReference;
import java.sql.Connection;
import java.util.ArrayList;
import java.util.List;

/**
 * Gives each pool a {@link PoolProbe}, unless it is one of our measured data sources already. Borrowers get the pool's own
 * connections, and what keeps statistics goes on being told.
 */
public final class HikariHook implements Hook {
    private static final String OURS = "dev.parallax.hikaricp.";

    /** Beyond, pools that are gone are forgotten; before, what they recorded is still told. */
    private static final int POOLS_MAX = 64;

    /** Few, and read by each borrower: replaced as a whole. */
    private volatile Watched[] pools = {};

    /** By the bridge. */
    public HikariHook() {}

    /** @param probe null for a pool that is measured without us */
    private record Watched(WeakReference<Object> pool, String name, PoolProbe probe) {}

    @Override
    public Object entered(Point point, Object self, Object argument) {
        PoolProbe probe = probe(self);
        if (probe == null) {
            return null;
        }
        return switch (point) {
            case HIKARI_TRACKER -> probe.tracker((MetricsTrackerFactory) argument);
            case HIKARI_BORROW -> probe.borrows(((HikariPool) self).config.isAllowPoolSuspension());
            case HIKARI_TEST -> probe.tests((Connection) argument);
            case HIKARI_CREATE -> probe.creates();
            case HIKARI_RETURN -> probe.used((Long) argument);
            default -> throw new IllegalArgumentException(point + " is not here");
        };
    }

    @Override
    public void left(Point point, Object begun, Throwable thrown) {
        ((PoolProbe.Step) begun).ends(thrown);
    }

    /** There is one for each pool that is used: made with the first thing that it does. */
    private PoolProbe probe(Object pool) {
        for (Watched watched : pools) {
            if (watched.pool.refersTo(pool)) {
                return watched.probe;
            }
        }
        return add((HikariPool) pool);
    }

    private synchronized PoolProbe add(HikariPool pool) {
        List<Watched> kept = new ArrayList<>();
        for (Watched watched : pools) {
            if (watched.pool.refersTo(pool)) {
                return watched.probe;
            }
            kept.add(watched);
        }
        if (kept.size() >= POOLS_MAX) {
            kept.removeIf(watched -> watched.pool.refersTo(null));
        }
        PoolProbe probe = isOurs(pool.config.getClass()) || isOurs(pool.config.getMetricsTrackerFactory())
                ? null
                : new PoolProbe(pool);
        kept.add(new Watched(new WeakReference<>(pool), pool.config.getPoolName(), probe));
        pools = kept.toArray(new Watched[0]);
        return probe;
    }

    private static boolean isOurs(Object factory) {
        return factory != null && isOurs(factory.getClass());
    }

    private static boolean isOurs(Class<?> type) {
        for (Class<?> one = type; one != null; one = one.getSuperclass()) {
            if (one.getName().startsWith(OURS)) {
                return true;
            }
        }
        return false;
    }

    @Override
    public void read(Reader reader) {
        for (Watched watched : pools) {
            if (watched.probe != null) {
                read(watched.name, watched.probe.metrics(), reader);
            }
        }
    }

    private static void read(String pool, PoolMetrics metrics, Reader reader) {
        Durations failures = metrics.failures().other().total();
        for (Labelled.Row row : metrics.failures().rows()) {
            failures = failures.plus(row.recorder().total());
        }
        reader.durations(Series.DB_WAIT, pool, metrics.waits().total());
        reader.durations(Series.DB_TEST, pool, metrics.tests().total());
        reader.durations(Series.DB_SUSPEND, pool, metrics.suspensions().total());
        reader.durations(Series.DB_TIMEOUT, pool, metrics.timeouts().total());
        reader.durations(Series.DB_FAILED, pool, failures);
        reader.durations(Series.DB_USE, pool, metrics.uses().total());
        reader.durations(Series.DB_CREATE, pool, metrics.creations().total());
        reader.durations(Series.DB_CREATE_FAILED, pool, metrics.failedCreations().total());
        reader.number(Series.DB_PENDING, pool, metrics.pending());
        metrics.pool().ifPresent(now -> {
            reader.number(Series.DB_USED, pool, now.getActiveConnections());
            reader.number(Series.DB_IDLE, pool, now.getIdleConnections());
        });
    }
}
