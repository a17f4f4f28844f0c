package dev.parallax.springboot;

import dev.parallax.hikaricp.PoolMetrics;
import dev.parallax.recorder.Catalog;
import dev.parallax.recorder.Registration;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;

/** The connection pools that are measured, and shown in the catalog. */
public final class MeasuredPools implements AutoCloseable {
    private final Catalog catalog;
    private final Map<String, Registration> shown = new HashMap<>();
    private final Map<String, PoolMetrics> pools = new ConcurrentSkipListMap<>();

    MeasuredPools(Catalog catalog) {
        this.catalog = catalog;
    }

    /**
     * Those so far.
     *
     * @return by the bean's name; grows. Of a bean that is made again, as in a scope that is refreshed, the last.
     */
    public Map<String, PoolMetrics> pools() {
        return Collections.unmodifiableMap(pools);
    }

    /**
     * One that takes the place of another of that bean is shown in its place: else each would be held for ever. Its totals go
     * on from those of the one before, if it has the name of that.
     *
     * @param poolName as HikariCP has it; null where it makes one up when it starts, and then the bean's is used
     */
    synchronized void add(String name, String poolName, PoolMetrics metrics) {
        if (pools.put(name, metrics) == metrics) {
            return;
        }
        // Shown before the other is closed: then what that had reported stays reported.
        Registration before = shown.put(name, metrics.bindTo(catalog, poolName == null ? name : poolName));
        if (before != null) {
            before.close();
        }
    }

    /** Shows them no longer. */
    @Override
    public synchronized void close() {
        shown.values().forEach(Registration::close);
        shown.clear();
    }
}
