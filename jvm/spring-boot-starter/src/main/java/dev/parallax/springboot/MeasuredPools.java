package dev.parallax.springboot;

import dev.parallax.hikaricp.PoolMetrics;
import dev.parallax.recorder.Catalog;
import dev.parallax.recorder.Registration;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CopyOnWriteArrayList;

/** The connection pools that are measured, and shown in the catalog. */
public final class MeasuredPools implements AutoCloseable {
    private final Catalog catalog;
    private final List<Registration> shown = new CopyOnWriteArrayList<>();
    private final Map<String, PoolMetrics> pools = new ConcurrentSkipListMap<>();

    MeasuredPools(Catalog catalog) {
        this.catalog = catalog;
    }

    /**
     * Those so far.
     *
     * @return by the bean's name; grows
     */
    public Map<String, PoolMetrics> pools() {
        return Collections.unmodifiableMap(pools);
    }

    /** @param poolName as HikariCP has it; null where it makes one up when it starts, and then the bean's is used */
    void add(String name, String poolName, PoolMetrics metrics) {
        pools.put(name, metrics);
        shown.add(metrics.showIn(catalog, poolName == null ? name : poolName));
    }

    /** Shows them no longer. */
    @Override
    public void close() {
        shown.forEach(Registration::close);
        shown.clear();
    }
}
