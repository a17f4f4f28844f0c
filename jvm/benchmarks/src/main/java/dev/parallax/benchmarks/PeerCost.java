package dev.parallax.benchmarks;

import com.codahale.metrics.Timer;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.metrics.LongHistogram;
import io.opentelemetry.sdk.metrics.Aggregation;
import io.opentelemetry.sdk.metrics.InstrumentSelector;
import io.opentelemetry.sdk.metrics.SdkMeterProvider;
import io.opentelemetry.sdk.metrics.View;
import io.opentelemetry.sdk.testing.exporter.InMemoryMetricReader;
import io.prometheus.metrics.core.datapoints.DistributionDataPoint;
import io.prometheus.metrics.core.metrics.Histogram;
import java.util.concurrent.TimeUnit;
import org.HdrHistogram.Recorder;
import org.HdrHistogram.SingleWriterRecorder;
import org.LatencyUtils.LatencyStats;
import org.LatencyUtils.PauseDetector;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;

/**
 * The cost per record of other libraries, all threads on one series. Each with its labels bound, as its
 * documentation advises.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class PeerCost {
    private static final long HOUR = TimeUnit.HOURS.toNanos(1);

    @State(Scope.Benchmark)
    public static class Hdr {
        final Recorder shared = new Recorder(1, HOUR, 2);
    }

    /** One per thread: it is not made for more. */
    @State(Scope.Thread)
    public static class HdrSingle {
        final SingleWriterRecorder single = new SingleWriterRecorder(1, HOUR, 2);
    }

    @State(Scope.Benchmark)
    public static class Latency {
        final LatencyStats stats;

        public Latency() {
            // Its detector is three threads that wake each millisecond; only recording is measured here.
            LatencyStats.setDefaultPauseDetector(new NoPauses());
            stats = new LatencyStats();
        }
    }

    private static final class NoPauses extends PauseDetector {}

    @State(Scope.Benchmark)
    public static class Micrometer {
        private final PrometheusMeterRegistry registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
        final io.micrometer.core.instrument.Timer plain = registry.timer("plain", "route", "/items");
        final io.micrometer.core.instrument.Timer histogram =
                io.micrometer.core.instrument.Timer.builder("histogram")
                        .tag("route", "/items")
                        .publishPercentileHistogram()
                        .register(registry);
    }

    @State(Scope.Benchmark)
    public static class ClientJava {
        final DistributionDataPoint classic =
                Histogram.builder().name("classic").classicOnly().labelNames("route").build().labelValues("/items");
        final DistributionDataPoint nativeOnly =
                Histogram.builder().name("native").nativeOnly().labelNames("route").build().labelValues("/items");
    }

    @State(Scope.Benchmark)
    public static class Otel {
        final Attributes attributes = Attributes.of(AttributeKey.stringKey("route"), "/items");
        final LongHistogram explicit = histogram(Aggregation.explicitBucketHistogram());
        final LongHistogram exponential = histogram(Aggregation.base2ExponentialBucketHistogram());

        private static LongHistogram histogram(Aggregation aggregation) {
            SdkMeterProvider provider =
                    SdkMeterProvider.builder()
                            .registerMetricReader(InMemoryMetricReader.create())
                            .registerView(
                                    InstrumentSelector.builder().setName("*").build(),
                                    View.builder().setAggregation(aggregation).build())
                            .build();
            return provider.get("benchmarks").histogramBuilder("duration").ofLongs().build();
        }
    }

    @State(Scope.Benchmark)
    public static class Dropwizard {
        final Timer timer = new Timer();
    }

    @Benchmark
    public void hdrRecorder(Values values, Hdr hdr) {
        hdr.shared.recordValue(values.next());
    }

    @Benchmark
    public void hdrSingleWriter(Values values, HdrSingle hdr) {
        hdr.single.recordValue(values.next());
    }

    @Benchmark
    public void latencyUtils(Values values, Latency latency) {
        latency.stats.recordLatency(values.next());
    }

    @Benchmark
    public void micrometer(Values values, Micrometer micrometer) {
        micrometer.plain.record(values.next(), TimeUnit.NANOSECONDS);
    }

    @Benchmark
    public void micrometerHistogram(Values values, Micrometer micrometer) {
        micrometer.histogram.record(values.next(), TimeUnit.NANOSECONDS);
    }

    @Benchmark
    public void clientJavaClassic(Values values, ClientJava client) {
        client.classic.observe(values.next() / 1e9);
    }

    @Benchmark
    public void clientJavaNative(Values values, ClientJava client) {
        client.nativeOnly.observe(values.next() / 1e9);
    }

    @Benchmark
    public void otelExplicit(Values values, Otel otel) {
        otel.explicit.record(values.next(), otel.attributes);
    }

    @Benchmark
    public void otelExponential(Values values, Otel otel) {
        otel.exponential.record(values.next(), otel.attributes);
    }

    @Benchmark
    public void dropwizard(Values values, Dropwizard dropwizard) {
        dropwizard.timer.update(values.next(), TimeUnit.NANOSECONDS);
    }
}
