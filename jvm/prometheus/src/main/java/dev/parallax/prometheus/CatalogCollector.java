package dev.parallax.prometheus;

import dev.parallax.recorder.Catalog;
import dev.parallax.recorder.Distribution;
import dev.parallax.recorder.Durations;
import dev.parallax.recorder.ExponentialBuckets;
import dev.parallax.recorder.Family;
import dev.parallax.recorder.Kind;
import io.prometheus.metrics.model.registry.MultiCollector;
import io.prometheus.metrics.model.snapshots.ClassicHistogramBuckets;
import io.prometheus.metrics.model.snapshots.CounterSnapshot;
import io.prometheus.metrics.model.snapshots.CounterSnapshot.CounterDataPointSnapshot;
import io.prometheus.metrics.model.snapshots.Exemplars;
import io.prometheus.metrics.model.snapshots.GaugeSnapshot;
import io.prometheus.metrics.model.snapshots.GaugeSnapshot.GaugeDataPointSnapshot;
import io.prometheus.metrics.model.snapshots.HistogramSnapshot;
import io.prometheus.metrics.model.snapshots.HistogramSnapshot.HistogramDataPointSnapshot;
import io.prometheus.metrics.model.snapshots.Labels;
import io.prometheus.metrics.model.snapshots.MetricMetadata;
import io.prometheus.metrics.model.snapshots.MetricSnapshot;
import io.prometheus.metrics.model.snapshots.MetricSnapshots;
import io.prometheus.metrics.model.snapshots.NativeHistogramBuckets;
import io.prometheus.metrics.model.snapshots.Unit;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Exports the series of a {@link Catalog} to a registry of the Prometheus client.
 *
 * <pre>{@code
 * PrometheusRegistry.defaultRegistry.register(new CatalogCollector(catalog));
 * }</pre>
 *
 * <p>Durations and amounts are histograms, both native and classic; the format of a scrape decides which it gets.
 * Native buckets are ours, merged without loss: schema 5, or a coarser one. If a bound of a classic bucket is not one
 * of our boundaries, the bucket includes values up to one part in 128 above it; count and sum are exact, whatever the
 * bounds.
 *
 * <p>Names are those of the catalog with underscores, the unit and {@code _total}: {@code
 * http_client_request_duration_seconds}. Two names that become equal, or that would merge two series, cannot both be
 * exported: the later one is left out, and that is logged once. Names of other collectors in the registry are not known
 * here.
 *
 * <p>Cost: none when recording. A scrape reads each series once.
 */
public final class CatalogCollector implements MultiCollector {
    private static final System.Logger LOG = System.getLogger(CatalogCollector.class.getName());

    /** The client's own default for durations. */
    private static final double[] DURATION_BOUNDS = {.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10};

    /** Powers of four, which are boundaries of our buckets: from a line to a gigabyte. */
    private static final double[] AMOUNT_BOUNDS = {
        0x1p6, 0x1p8, 0x1p10, 0x1p12, 0x1p14, 0x1p16, 0x1p18, 0x1p20, 0x1p22, 0x1p24, 0x1p26, 0x1p28, 0x1p30
    };

    private final Catalog catalog;
    private final int scale;
    private final double[] durationBounds;
    private final double[] amountBounds;

    /** What was logged, so that it is logged only once. */
    private final Set<String> leftOut = ConcurrentHashMap.newKeySet();

    /**
     * With native histograms of schema 5 and classic ones with the client's default bounds.
     *
     * @param catalog to export
     */
    public CatalogCollector(Catalog catalog) {
        this(catalog, Durations.FINEST_SCALE, DURATION_BOUNDS, AMOUNT_BOUNDS);
    }

    private CatalogCollector(Catalog catalog, int scale, double[] durationBounds, double[] amountBounds) {
        this.catalog = catalog;
        this.scale = scale;
        this.durationBounds = durationBounds;
        this.amountBounds = amountBounds;
    }

    /**
     * With coarser native histograms: each lower schema has half the buckets.
     *
     * @param schema from -4 to 5
     * @return another collector
     */
    public CatalogCollector withSchema(int schema) {
        Durations.NONE.exponential(schema);
        return new CatalogCollector(catalog, schema, durationBounds, amountBounds);
    }

    /**
     * With other classic bounds for durations.
     *
     * @param seconds in rising order; none for classic histograms of only count and sum
     * @return another collector
     */
    public CatalogCollector withDurationBounds(double... seconds) {
        return new CatalogCollector(catalog, scale, checked(seconds), amountBounds);
    }

    /**
     * With other classic bounds for amounts, whatever their unit.
     *
     * @param bounds in rising order; none for classic histograms of only count and sum
     * @return another collector
     */
    public CatalogCollector withAmountBounds(double... bounds) {
        return new CatalogCollector(catalog, scale, durationBounds, checked(bounds));
    }

    private static double[] checked(double[] bounds) {
        for (int i = 0; i < bounds.length; i++) {
            if (!Double.isFinite(bounds[i]) || i > 0 && bounds[i] <= bounds[i - 1]) {
                throw new IllegalArgumentException(Arrays.toString(bounds) + ": give finite bounds in rising order");
            }
        }
        return bounds.clone();
    }

    @Override
    public MetricSnapshots collect() {
        List<MetricSnapshot> snapshots = new ArrayList<>();
        Map<String, String> claims = new HashMap<>();
        for (Family family : catalog.read()) {
            try {
                Unit unit = Names.unit(family.unit(), family.kind());
                String name = Names.metric(family.name(), unit, family.kind());
                if (!family.points().isEmpty() && claim(claims, family, name)) {
                    String help = family.help().isBlank() ? null : family.help();
                    snapshots.add(snapshot(family, new MetricMetadata(name, help, unit)));
                }
            } catch (IllegalArgumentException e) {
                // A series that the client refuses does not affect the others.
                leaveOut(family.name(), e.getMessage());
            }
        }
        return new MetricSnapshots(snapshots);
    }

    /** Whether all names that a scrape would use for it are free. */
    private boolean claim(Map<String, String> claims, Family family, String name) {
        List<String> suffixes = switch (family.kind()) {
            case DURATIONS, AMOUNTS -> List.of("", "_bucket", "_count", "_sum", "_created");
            case COUNTER -> List.of("", "_total", "_created");
            case UP_DOWN, GAUGE -> List.of("");
        };
        for (String suffix : suffixes) {
            String owner = claims.get(name + suffix);
            if (owner != null) {
                leaveOut(family.name(), "it would be " + name + suffix + ", as " + owner + " is");
                return false;
            }
        }
        suffixes.forEach(suffix -> claims.put(name + suffix, family.name()));
        return true;
    }

    private void leaveOut(String what, String why) {
        if (leftOut.add(what)) {
            LOG.log(Level.WARNING, "not told to Prometheus: {0}: {1}", what, why);
        }
    }

    private MetricSnapshot snapshot(Family family, MetricMetadata metadata) {
        // In the catalog's order: the client sorts, and a list that is already in order is sorted quickly.
        Map<Labels, Family.Point> points = new LinkedHashMap<>();
        for (Family.Point point : family.points()) {
            if (family.kind() == Kind.COUNTER && !(((Family.Value) point).value() >= 0)) {
                leaveOut(family.name() + point.labels(), "it counts to less than nothing");
            } else if (points.putIfAbsent(Names.labels(point.labels()), point) != null) {
                leaveOut(family.name() + point.labels(), "another one has the same labels, in the words of Prometheus");
            }
        }
        long since = family.sinceEpochMs();
        return switch (family.kind()) {
            case DURATIONS, AMOUNTS -> {
                double[] bounds = family.kind() == Kind.DURATIONS ? durationBounds : amountBounds;
                List<HistogramDataPointSnapshot> data = new ArrayList<>();
                points.forEach((labels, point) ->
                        data.add(histogram(((Family.Histogram) point).distribution(), bounds, labels, since)));
                yield new HistogramSnapshot(metadata, data);
            }
            case COUNTER -> {
                List<CounterDataPointSnapshot> data = new ArrayList<>();
                points.forEach((labels, point) ->
                        data.add(new CounterDataPointSnapshot(((Family.Value) point).value(), labels, null, since)));
                yield new CounterSnapshot(metadata, data);
            }
            case UP_DOWN, GAUGE -> {
                List<GaugeDataPointSnapshot> data = new ArrayList<>();
                points.forEach((labels, point) ->
                        data.add(new GaugeDataPointSnapshot(((Family.Value) point).value(), labels, null)));
                yield new GaugeSnapshot(metadata, data);
            }
        };
    }

    private HistogramDataPointSnapshot histogram(Distribution spread, double[] bounds, Labels labels, long since) {
        ExponentialBuckets buckets = spread.exponential(scale);
        int used = 0;
        for (long count : buckets.counts()) {
            used += count == 0 ? 0 : 1;
        }
        int[] numbers = new int[used];
        long[] counts = new long[used];
        int at = 0;
        for (int i = 0; i < buckets.counts().length; i++) {
            if (buckets.counts()[i] != 0) {
                numbers[at] = buckets.offset() + i + 1;
                counts[at++] = buckets.counts()[i];
            }
        }
        return new HistogramDataPointSnapshot(
                classic(spread, bounds),
                scale,
                buckets.zeroCount(),
                0,
                NativeHistogramBuckets.of(numbers, counts),
                NativeHistogramBuckets.EMPTY,
                spread.sum(),
                labels,
                Exemplars.EMPTY,
                since);
    }

    private static ClassicHistogramBuckets classic(Distribution spread, double[] bounds) {
        long[] upTo = spread.countsUpTo(bounds);
        double[] ends = Arrays.copyOf(bounds, bounds.length + 1);
        ends[bounds.length] = Double.POSITIVE_INFINITY;
        long[] counts = new long[ends.length];
        long before = 0;
        for (int i = 0; i < upTo.length; i++) {
            counts[i] = upTo[i] - before;
            before = upTo[i];
        }
        counts[bounds.length] = spread.count() - before;
        return ClassicHistogramBuckets.of(ends, counts);
    }
}
