package dev.parallax.springboot;

import dev.parallax.hikaricp.PoolMetrics;
import java.util.Collections;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;

/** The connection pools that are measured. */
public final class MeasuredPools {
    private final Map<String, PoolMetrics> pools = new ConcurrentSkipListMap<>();

    MeasuredPools() {}

    /**
     * Those so far.
     *
     * @return by the bean's name; grows
     */
    public Map<String, PoolMetrics> pools() {
        return Collections.unmodifiableMap(pools);
    }

    void add(String name, PoolMetrics metrics) {
        pools.put(name, metrics);
    }
}
