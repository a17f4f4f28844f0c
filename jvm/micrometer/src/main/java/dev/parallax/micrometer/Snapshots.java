package dev.parallax.micrometer;

import dev.parallax.recorder.Distribution;
import io.micrometer.core.instrument.distribution.CountAtBucket;
import io.micrometer.core.instrument.distribution.DistributionStatisticConfig;
import io.micrometer.core.instrument.distribution.HistogramSnapshot;
import io.micrometer.core.instrument.distribution.ValueAtPercentile;
import java.util.OptionalDouble;

/** Micrometer's snapshots, made from our distributions. */
final class Snapshots {
    private final double[] percentiles;
    private final double[] bounds;

    /** Factor from our unit to Micrometer's: for durations, from seconds to nanoseconds. */
    private final double unit;

    Snapshots(DistributionStatisticConfig config, double unit) {
        this.unit = unit;
        percentiles = config.getPercentiles() == null ? new double[0] : config.getPercentiles();
        bounds = config.getHistogramBuckets(true).stream().mapToDouble(bound -> bound).toArray();
    }

    /**
     * Percentiles and maximum cover recent time; count, sum and buckets everything, as in other cumulative
     * registries.
     */
    HistogramSnapshot of(Distribution total, double sum, Distribution latest) {
        return new HistogramSnapshot(
                total.count(),
                sum,
                latest.max().orElse(0) * unit,
                percentiles(latest),
                counts(total),
                (out, scale) -> out.println(total.count() + " in all, of them lately " + latest.count()));
    }

    private ValueAtPercentile[] percentiles(Distribution latest) {
        ValueAtPercentile[] values = new ValueAtPercentile[percentiles.length];
        for (int i = 0; i < values.length; i++) {
            values[i] = new ValueAtPercentile(percentiles[i], percentile(latest, percentiles[i]).orElse(0) * unit);
        }
        return values;
    }

    static OptionalDouble percentile(Distribution of, double percentile) {
        return of.valueAtRank(Math.max(1, (long) Math.ceil(percentile * of.count())));
    }

    private CountAtBucket[] counts(Distribution total) {
        double[] inOurs = new double[bounds.length];
        for (int i = 0; i < bounds.length; i++) {
            inOurs[i] = bounds[i] / unit;
        }
        long[] counts = total.countsUpTo(inOurs);
        CountAtBucket[] buckets = new CountAtBucket[bounds.length];
        for (int i = 0; i < buckets.length; i++) {
            buckets[i] = new CountAtBucket(bounds[i], (double) counts[i]);
        }
        return buckets;
    }
}
