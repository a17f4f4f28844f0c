package dev.parallax.agent.hooks;

import com.zaxxer.hikari.metrics.MetricsTrackerFactory;
import com.zaxxer.hikari.pool.HikariPool;
import dev.parallax.agent.instrument.Hook;
import dev.parallax.agent.instrument.Point;
import dev.parallax.agent.report.Reader;
import dev.parallax.agent.report.Series;
import dev.parallax.agent.report.Source;
import dev.parallax.hikaricp.PoolMetrics;
import dev.parallax.hikaricp.PoolProbe;
import dev.parallax.recorder.Durations;
import dev.parallax.recorder.LabelledRecorder;
import java.sql.Connection;

/**
 * Gives each pool a {@link PoolProbe}, unless it is already measured by our data source. Borrowers get the pool's own
 * connections, and existing metrics trackers keep working.
 */
public final class HikariHook implements Hook {
    private static final String OURS = "dev.parallax.hikaricp.";

    private final PerPool<Watched> pools = new PerPool<>(pool -> watched((HikariPool) pool));

    /** Broken connections, which the pool never lends again. */
    private final Moments broken = new Moments();

    /** Lend times for pools that do not keep them: those started before the agent that have no metrics tracker. */
    private final Moments lent = new Moments();

    /** Called by the bridge. */
    public HikariHook() {}

    /** @param probe null for a pool that is measured without the agent; its name is not used */
    private record Watched(String name, PoolProbe probe) implements Source {
        @Override
        public void read(Reader reader) {
            if (probe != null) {
                HikariHook.read(name, probe.metrics(), reader);
            }
        }
    }

    @Override
    public Object entered(Point point, Object self, Object argument) {
        PoolProbe probe = pools.of(self).probe;
        if (probe == null) {
            return null;
        }
        return switch (point) {
            case HIKARI_TRACKER -> probe.tracker((MetricsTrackerFactory) argument);
            case HIKARI_BORROW -> probe.startBorrow(((HikariPool) self).config.isAllowPoolSuspension());
            case HIKARI_TEST -> probe.startTest((Connection) argument);
            case HIKARI_CREATE -> probe.startCreate();
            case HIKARI_LEND -> recordLent(probe, (Object[]) argument);
            case HIKARI_RETURN, HIKARI_BREAK -> recordUse(probe, point, (Object[]) argument);
            default -> throw new IllegalArgumentException(point + " is not a place of this hook");
        };
    }

    private PoolProbe.Step recordLent(PoolProbe probe, Object[] entryAndLentNs) {
        if ((Long) entryAndLentNs[1] == 0) {
            lent.put(entryAndLentNs[0], probe.markLent());
        }
        return null;
    }

    /** A connection that breaks while it is returned is reported twice but was used once. */
    private PoolProbe.Step recordUse(PoolProbe probe, Point point, Object[] entryAndLentNs) {
        Object entry = entryAndLentNs[0];
        boolean isFirst = point == Point.HIKARI_BREAK ? broken.putFirst(entry, System.nanoTime()) : broken.take(entry) == null;
        Long stampedNs = lent.take(entry);
        Long lentNs = stampedNs == null ? (Long) entryAndLentNs[1] : stampedNs;
        // A connection without a time stamp was lent before the agent started.
        return isFirst && lentNs != 0 ? probe.recordUse(lentNs) : null;
    }

    @Override
    public Object left(Point point, Object begun, Object returned, Throwable thrown) {
        ((PoolProbe.Step) begun).end(thrown);
        return null;
    }

    private Watched watched(HikariPool pool) {
        boolean isMeasured = isOurs(pool.config.getClass()) || isOurs(pool.config.getMetricsTrackerFactory());
        return isMeasured ? new Watched(null, null) : new Watched(pools.label(pool.config.getPoolName()), new PoolProbe(pool));
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
        pools.read(reader);
    }

    private static void read(String pool, PoolMetrics metrics, Reader reader) {
        Durations failures = metrics.failures().other().total();
        for (LabelledRecorder.Row row : metrics.failures().rows()) {
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
