package dev.parallax.opentelemetry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.parallax.recorder.AmountRecorder;
import dev.parallax.recorder.Catalog;
import dev.parallax.recorder.Counter;
import dev.parallax.recorder.Description;
import dev.parallax.recorder.LabelledRecorder;
import dev.parallax.recorder.Recorder;
import dev.parallax.recorder.UpDownCounter;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.exporter.internal.otlp.metrics.MetricsRequestMarshaler;
import io.opentelemetry.proto.collector.metrics.v1.ExportMetricsServiceRequest;
import io.opentelemetry.proto.metrics.v1.AggregationTemporality;
import io.opentelemetry.proto.metrics.v1.ExponentialHistogramDataPoint;
import io.opentelemetry.proto.metrics.v1.Metric;
import io.opentelemetry.sdk.metrics.SdkMeterProvider;
import io.opentelemetry.sdk.metrics.data.ExponentialHistogramPointData;
import io.opentelemetry.sdk.metrics.data.MetricData;
import io.opentelemetry.sdk.metrics.export.MetricProducer;
import io.opentelemetry.sdk.testing.exporter.InMemoryMetricReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/** Through the SDK and its encoder: what a collector would get. */
class CatalogProducerTest {
    private static final Description DURATION = Description.of("http.client.request.duration", "How long.");
    private static final Description COUNT = Description.of("messages", "{message}", "How many.");

    private final Catalog catalog = new Catalog();
    private final InMemoryMetricReader reader = InMemoryMetricReader.create();

    /** If this fails, a percentile that a backend computes is off. */
    @Test
    void eachDurationIsInTheBucketThatTheDefinitionGivesIt() throws IOException {
        register(CatalogProducer.cumulative(catalog));
        Recorder recorder = catalog.durations(DURATION.with("server.address", "a").with("server.port", "443"));
        Map<Integer, Long> planted = new TreeMap<>();
        SplittableRandom random = new SplittableRandom(7);
        double sum = 0;
        // Less than five octaves, so that the maximum number of buckets suffices.
        for (int n = 0; n < 10_000; n++) {
            long ns = random.nextLong(1_000_000, 30_000_000);
            recorder.record(ns);
            sum += ns;
            planted.merge(bucket(ns / 1e9, 5), 1L, Long::sum);
        }
        recorder.record(0);
        Metric metric = otlp().get("http.client.request.duration");
        assertEquals("s", metric.getUnit());
        assertEquals("How long.", metric.getDescription());
        assertEquals(
                AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE,
                metric.getExponentialHistogram().getAggregationTemporality());
        ExponentialHistogramDataPoint point = metric.getExponentialHistogram().getDataPoints(0);
        assertEquals(10_001, point.getCount());
        assertEquals(1, point.getZeroCount());
        assertEquals(sum / 1e9, point.getSum(), sum / 1e9 * 1e-15);
        assertEquals(0, point.getMin());
        assertEquals(5, point.getScale());
        assertEquals(planted, buckets(point));
        assertEquals("a", point.getAttributes(0).getValue().getStringValue());
        assertEquals(443, point.getAttributes(1).getValue().getIntValue());
        assertTrue(point.getStartTimeUnixNano() <= point.getTimeUnixNano());
    }

    @Test
    void whatIsWideIsCoarserAndAsExact() throws IOException {
        register(CatalogProducer.cumulative(catalog));
        Recorder recorder = catalog.durations(DURATION);
        Map<Integer, Long> planted = new TreeMap<>();
        for (long ns = 1; ns < 3_600_000_000_000L; ns = ns * 3 / 2 + 1) {
            recorder.record(ns);
            planted.merge(bucket(ns / 1e9, 1), 1L, Long::sum);
        }
        ExponentialHistogramDataPoint point =
                otlp().get("http.client.request.duration").getExponentialHistogram().getDataPoints(0);
        assertEquals(1, point.getScale());
        assertEquals(planted, buckets(point));
    }

    @Test
    void sumsAndGaugesAreWhatTheyAre() throws IOException {
        register(CatalogProducer.cumulative(catalog));
        catalog.counter(COUNT.with("queue", "").with("http.response.status_code", "_OTHER")).add(2.5);
        catalog.upDownCounter(Description.of("active", "{request}", "")).add(-3);
        catalog.gauge(Description.of("share", "1", ""), () -> 0.25);
        catalog.gauge(Description.of("absent", "1", ""), () -> Double.NaN);
        Map<String, Metric> metrics = otlp();
        assertEquals(3, metrics.size(), "absent is not zero");
        assertTrue(metrics.get("messages").getSum().getIsMonotonic());
        assertEquals(2.5, metrics.get("messages").getSum().getDataPoints(0).getAsDouble());
        assertEquals(1, metrics.get("messages").getSum().getDataPoints(0).getAttributesCount());
        assertFalse(metrics.get("active").getSum().getIsMonotonic());
        assertEquals(-3, metrics.get("active").getSum().getDataPoints(0).getAsDouble());
        assertEquals(0.25, metrics.get("share").getGauge().getDataPoints(0).getAsDouble());
    }

    @Test
    void totalsNeverGoBackAndTheLastHasAll() throws InterruptedException {
        register(CatalogProducer.cumulative(catalog));
        List<Thread> writers = writers();
        long last = 0;
        while (writers.stream().anyMatch(Thread::isAlive)) {
            long count = 0;
            for (ExponentialHistogramPointData point : spreads()) {
                count += point.getCount();
                assertEquals(point.getCount(), point.getPositiveBuckets().getTotalCount());
            }
            assertTrue(count >= last);
            last = count;
        }
        assertEquals(9L * RECORDS, spreads().stream().mapToLong(ExponentialHistogramPointData::getCount).sum());
    }

    /** Each interval once: their sum is the total, whatever was recorded during a reading. */
    @Test
    void intervalsAddUpToTheTotal() throws InterruptedException {
        register(CatalogProducer.delta(catalog));
        List<Thread> writers = writers();
        double[] sums = new double[4];
        while (writers.stream().anyMatch(Thread::isAlive)) {
            addInterval(sums);
        }
        addInterval(sums);
        assertEquals(9.0 * RECORDS, sums[0]);
        assertEquals(3.0 * RECORDS * (NS / 1e9 * 2) + 3.0 * RECORDS * 5_000, sums[1], sums[1] * 1e-9);
        assertEquals(3.0 * RECORDS, sums[2]);
        double[] nothing = new double[4];
        addInterval(nothing);
        assertEquals(0, nothing[0] + nothing[1] + nothing[2]);
        assertEquals(7, nothing[3], "what goes up and down is no interval");
    }

    @Test
    void aSeriesThatWasForgottenAndCameAgainCountsFromZero() {
        register(CatalogProducer.delta(catalog));
        double[] sums = new double[4];
        catalog.counter(COUNT).add(5);
        catalog.durations(DURATION).record(1_000_000);
        addInterval(sums);
        assertTrue(catalog.remove("messages", Map.of()));
        assertTrue(catalog.remove(DURATION.name(), Map.of()));
        catalog.counter(COUNT).add(3);
        catalog.durations(DURATION).record(9_000_000);
        addInterval(sums);
        assertEquals(8, sums[2]);
        assertEquals(2, sums[0]);
        assertEquals(0.01, sums[1], 1e-12);
        assertTrue(catalog.remove(DURATION.name(), Map.of()));
        // Between the same two powers of two as the one before.
        catalog.durations(DURATION).record(10_000_000);
        catalog.durations(DURATION).record(10_000_000);
        addInterval(sums);
        assertEquals(4, sums[0]);
        assertEquals(0.03, sums[1], 1e-12);
    }

    private static final int RECORDS = 300_000;
    private static final long NS = 1_234_567;

    private List<Thread> writers() {
        LabelledRecorder durations = catalog.durations(DURATION, 10, "http.request.method");
        Recorder other = catalog.durations(Description.of("other", ""));
        AmountRecorder sizes = catalog.amounts(Description.of("sizes", "By", ""));
        Counter counter = catalog.counter(COUNT);
        UpDownCounter active = catalog.upDownCounter(Description.of("active", "", ""));
        active.add(7);
        List<Thread> writers = new ArrayList<>();
        for (int n = 0; n < 3; n++) {
            String method = "M" + n;
            Thread writer = new Thread(() -> {
                for (int i = 0; i < RECORDS; i++) {
                    active.increment();
                    durations.row(method).record(NS);
                    other.record(NS);
                    sizes.record(5_000L);
                    counter.increment();
                    active.decrement();
                }
            });
            writers.add(writer);
            writer.start();
        }
        return writers;
    }

    /** Count and sum of all histograms, the sum of all counters, and what goes up and down. */
    private void addInterval(double[] sums) {
        for (MetricData metric : reader.collectAllMetrics()) {
            metric.getExponentialHistogramData().getPoints().forEach(point -> {
                assertEquals(point.getCount(), point.getPositiveBuckets().getTotalCount() + point.getZeroCount());
                sums[0] += point.getCount();
                sums[1] += point.getSum();
            });
            if (metric.getName().equals("active")) {
                sums[3] = metric.getDoubleSumData().getPoints().iterator().next().getValue();
            } else {
                metric.getDoubleSumData().getPoints().forEach(point -> sums[2] += point.getValue());
            }
        }
    }

    private List<ExponentialHistogramPointData> spreads() {
        List<ExponentialHistogramPointData> points = new ArrayList<>();
        reader.collectAllMetrics().forEach(metric -> points.addAll(metric.getExponentialHistogramData().getPoints()));
        return points;
    }

    private void register(MetricProducer producer) {
        SdkMeterProvider.builder().registerMetricProducer(producer).registerMetricReader(reader).build();
    }

    /** Encoded by the SDK's exporter and decoded by the protocol's own definition. */
    private Map<String, Metric> otlp() throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        MetricsRequestMarshaler.create(reader.collectAllMetrics()).writeBinaryTo(bytes);
        Map<String, Metric> metrics = new TreeMap<>();
        ExportMetricsServiceRequest.parseFrom(bytes.toByteArray())
                .getResourceMetrics(0)
                .getScopeMetrics(0)
                .getMetricsList()
                .forEach(metric -> metrics.put(metric.getName(), metric));
        return metrics;
    }

    private static Map<Integer, Long> buckets(ExponentialHistogramDataPoint point) {
        Map<Integer, Long> counts = new TreeMap<>();
        for (int i = 0; i < point.getPositive().getBucketCountsCount(); i++) {
            if (point.getPositive().getBucketCounts(i) != 0) {
                counts.put(point.getPositive().getOffset() + i, point.getPositive().getBucketCounts(i));
            }
        }
        return counts;
    }

    /** By definition: above base^i and at most base^(i + 1). */
    private static int bucket(double value, int scale) {
        int i = (int) Math.floor(Math.log(value) / Math.log(2) * Math.scalb(1, scale)) - 1;
        while (Math.pow(2, Math.scalb(i + 1, -scale)) < value) {
            i++;
        }
        return i;
    }

    /** The SDK's own metrics and ours are exported together. */
    @Test
    void ourMetricsStandNextToTheSdks() {
        SdkMeterProvider provider = SdkMeterProvider.builder()
                .registerMetricProducer(CatalogProducer.cumulative(catalog))
                .registerMetricReader(reader)
                .build();
        provider.get("theirs").counterBuilder("their.count").build().add(1);
        catalog.counter(COUNT.with("a", "b")).increment();
        List<String> names = reader.collectAllMetrics().stream().map(MetricData::getName).sorted().toList();
        assertEquals(List.of("messages", "their.count"), names);
        Attributes attributes = Attributes.of(AttributeKey.stringKey("a"), "b");
        assertTrue(reader.collectAllMetrics().stream()
                .flatMap(metric -> metric.getDoubleSumData().getPoints().stream())
                .anyMatch(point -> point.getAttributes().equals(attributes)));
    }
}
