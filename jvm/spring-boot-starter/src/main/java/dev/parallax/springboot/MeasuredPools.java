package dev.parallax.springboot;

import dev.parallax.hikaricp.PoolMetrics;
import dev.parallax.recorder.Catalog;
import dev.parallax.recorder.Registration;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;

/** The connection pools that are measured and exported through the catalog. */
public final class MeasuredPools implements AutoCloseable {
    private final Catalog catalog;
    private final Map<String, Registration> shown = new HashMap<>();
    private final Map<String, PoolMetrics> pools = new ConcurrentSkipListMap<>();

    MeasuredPools(Catalog catalog) {
        this.catalog = catalog;
    }

    /**
     * The pools measured so far.
     *
     * @return by the bean's name; grows. For a bean that is created again, as in a refreshed scope, the last one.
     */
    public Map<String, PoolMetrics> pools() {
        return Collections.unmodifiableMap(pools);
    }

    /**
     * A pool that replaces an earlier one of the same bean is exported in its place, because otherwise each would be
     * held for ever. Its totals continue those of the earlier one if both have the same name.
     *
     * @param poolName HikariCP's name; null if HikariCP makes one up at start, in which case the bean's is used
     */
    synchronized void add(String name, String poolName, PoolMetrics metrics) {
        if (pools.put(name, metrics) == metrics) {
            return;
        }
        // Registered before the other one is closed, so that what that one has reported stays reported.
        Registration before = shown.put(name, metrics.bindTo(catalog, poolName == null ? name : poolName));
        if (before != null) {
            before.close();
        }
    }

    /** Stops exporting them. */
    @Override
    public synchronized void close() {
        shown.values().forEach(Registration::close);
        shown.clear();
    }
}
