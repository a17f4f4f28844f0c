package dev.parallax.opentelemetry;

import dev.parallax.recorder.Catalog;
import dev.parallax.recorder.Distribution;
import dev.parallax.recorder.Durations;
import dev.parallax.recorder.ExponentialBuckets;
import dev.parallax.recorder.Family;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.common.AttributesBuilder;
import io.opentelemetry.sdk.common.Clock;
import io.opentelemetry.sdk.metrics.data.AggregationTemporality;
import io.opentelemetry.sdk.metrics.data.DoublePointData;
import io.opentelemetry.sdk.metrics.data.ExponentialHistogramBuckets;
import io.opentelemetry.sdk.metrics.data.ExponentialHistogramData;
import io.opentelemetry.sdk.metrics.data.ExponentialHistogramPointData;
import io.opentelemetry.sdk.metrics.data.GaugeData;
import io.opentelemetry.sdk.metrics.data.MetricData;
import io.opentelemetry.sdk.metrics.data.MetricDataType;
import io.opentelemetry.sdk.metrics.data.SumData;
import io.opentelemetry.sdk.metrics.export.MetricProducer;
import io.opentelemetry.sdk.resources.Resource;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * Adds the series of a {@link Catalog} to the metrics that OpenTelemetry's SDK exports.
 *
 * <pre>{@code
 * SdkMeterProvider.builder().registerMetricProducer(CatalogProducer.cumulative(catalog)).registerMetricReader(reader).build();
 * }</pre>
 *
 * <p>Durations and amounts are exponential histograms: our buckets merged without loss, at the finest scale up to 5
 * that needs at most 160 of them, the limit of the SDK's own. Names, units and labels are those of the catalog; labels
 * that are numbers in the conventions are exported as numbers.
 *
 * <p>Cost: none when recording. A collection reads each series once.
 */
public final class CatalogProducer implements MetricProducer {
    /** Maximum number of buckets, as in the SDK's own histograms. */
    private static final int BUCKETS_MAX = 160;

    private static final ExponentialHistogramBuckets NONE = ExponentialHistogramBuckets.create(0, 0, List.of());

    /** Attributes of semantic conventions whose value is a number. */
    private static final Set<String> NUMBERS = Set.of(
            "client.port",
            "destination.port",
            "http.request.resend_count",
            "http.response.status_code",
            "network.local.port",
            "network.peer.port",
            "server.port",
            "source.port");

    private final Catalog catalog;
    private final AggregationTemporality temporality;

    /** For delta temporality: what was reported, and when. */
    private Map<Series, Family.Point> reported = new HashMap<>();

    private long reportedAtNs;

    private record Series(String name, Map<String, String> labels) {}

    private CatalogProducer(Catalog catalog, AggregationTemporality temporality) {
        this.catalog = catalog;
        this.temporality = temporality;
    }

    /**
     * Reports totals. For any number of readers.
     *
     * @param catalog to export
     * @return a producer to register
     */
    public static CatalogProducer cumulative(Catalog catalog) {
        return new CatalogProducer(catalog, AggregationTemporality.CUMULATIVE);
    }

    /**
     * Reports the change since the last reading, except for values that go up and down. For a single reader, because
     * the SDK does not identify readers. Remembers what it reported for each series.
     *
     * @param catalog to export
     * @return a producer to register
     */
    public static CatalogProducer delta(Catalog catalog) {
        return new CatalogProducer(catalog, AggregationTemporality.DELTA);
    }

    @Override
    public Collection<MetricData> produce(Resource resource) {
        if (temporality == AggregationTemporality.CUMULATIVE) {
            List<Family> families = catalog.read();
            return metrics(resource, families, Clock.getDefault().now());
        }
        synchronized (this) {
            Map<Series, Family.Point> now = new HashMap<>();
            List<Family> intervals = new ArrayList<>();
            for (Family family : catalog.read()) {
                intervals.add(family.kind().onlyGrows() ? interval(family, now) : family);
            }
            long nowNs = Clock.getDefault().now();
            List<MetricData> metrics = metrics(resource, intervals, nowNs);
            reported = now;
            reportedAtNs = nowNs;
            return metrics;
        }
    }

    /** The change since the last reading; the totals go to {@code now}. */
    private Family interval(Family family, Map<Series, Family.Point> now) {
        List<Family.Point> points = new ArrayList<>();
        for (Family.Point point : family.points()) {
            Series series = new Series(family.name(), point.labels());
            now.put(series, point);
            points.add(point.since(reported.get(series)));
        }
        return new Family(
                family.name(), family.unit(), family.help(), family.kind(), family.sinceEpochMs(), points);
    }

    private List<MetricData> metrics(Resource resource, List<Family> families, long nowNs) {
        List<MetricData> metrics = new ArrayList<>();
        for (Family family : families) {
            if (!family.points().isEmpty()) {
                metrics.add(metric(resource, family, nowNs));
            }
        }
        return metrics;
    }

    private MetricData metric(Resource resource, Family family, long nowNs) {
        long sinceNs = TimeUnit.MILLISECONDS.toNanos(family.sinceEpochMs());
        long startNs = Math.min(nowNs, family.kind().onlyGrows() ? Math.max(reportedAtNs, sinceNs) : sinceNs);
        return switch (family.kind()) {
            case DURATIONS, AMOUNTS -> {
                List<ExponentialHistogramPointData> points = new ArrayList<>();
                for (Family.Point point : family.points()) {
                    Distribution spread = ((Family.Histogram) point).distribution();
                    points.add(histogram(spread, attributes(point), startNs, nowNs));
                }
                ExponentialHistogramData data = ExponentialHistogramData.create(temporality, points);
                yield new Metric(resource, family, MetricDataType.EXPONENTIAL_HISTOGRAM, data);
            }
            case COUNTER -> {
                SumData<DoublePointData> sums = SumData.createDoubleSumData(true, temporality, values(family, startNs, nowNs));
                yield new Metric(resource, family, MetricDataType.DOUBLE_SUM, sums);
            }
            case UP_DOWN -> {
                SumData<DoublePointData> sums = SumData.createDoubleSumData(
                        false, AggregationTemporality.CUMULATIVE, values(family, startNs, nowNs));
                yield new Metric(resource, family, MetricDataType.DOUBLE_SUM, sums);
            }
            case GAUGE -> {
                GaugeData<DoublePointData> gauges = GaugeData.createDoubleGaugeData(values(family, startNs, nowNs));
                yield new Metric(resource, family, MetricDataType.DOUBLE_GAUGE, gauges);
            }
        };
    }

    private static List<DoublePointData> values(Family family, long startNs, long nowNs) {
        List<DoublePointData> points = new ArrayList<>();
        for (Family.Point point : family.points()) {
            double value = ((Family.Value) point).value();
            points.add(DoublePointData.create(startNs, nowNs, attributes(point), value, List.of()));
        }
        return points;
    }

    private static ExponentialHistogramPointData histogram(
            Distribution spread, Attributes attributes, long startNs, long nowNs) {
        ExponentialBuckets buckets = spread.exponential(Durations.FINEST_SCALE);
        while (buckets.counts().length > BUCKETS_MAX) {
            buckets = buckets.toScale(buckets.scale() - 1);
        }
        List<Long> counts = new ArrayList<>(buckets.counts().length);
        for (long count : buckets.counts()) {
            counts.add(count);
        }
        OptionalDouble min = spread.min();
        OptionalDouble max = spread.max();
        return ExponentialHistogramPointData.create(
                buckets.scale(),
                spread.sum(),
                buckets.zeroCount(),
                min.isPresent(),
                min.orElse(0),
                max.isPresent(),
                max.orElse(0),
                ExponentialHistogramBuckets.create(buckets.scale(), buckets.offset(), counts),
                NONE,
                startNs,
                nowNs,
                attributes,
                List.of());
    }

    /** An empty label is left out. */
    private static Attributes attributes(Family.Point point) {
        AttributesBuilder attributes = Attributes.builder();
        point.labels().forEach((name, value) -> {
            if (NUMBERS.contains(name) && isNumber(value)) {
                attributes.put(name, Long.parseLong(value));
            } else if (!value.isEmpty()) {
                attributes.put(name, value);
            }
        });
        return attributes.build();
    }

    private static boolean isNumber(String value) {
        return !value.isEmpty() && value.length() < 10 && value.chars().allMatch(c -> c >= '0' && c <= '9');
    }
}
