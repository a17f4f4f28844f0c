package dev.parallax.benchmarks;

import dev.parallax.micrometer.ParallaxMeterRegistry;
import dev.parallax.recorder.Catalog;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.DistributionSummary;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;

/**
 * The same application code on Micrometer's registry for Prometheus and on ours, all threads on one meter. Run with
 * {@code java -jar benchmarks.jar MicrometerCost}.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class MicrometerCost {
    /** The meters of one registry. */
    private static final class Meters {
        private final Timer plain;
        private final Timer histogram;
        private final Timer percentiles;
        private final DistributionSummary summary;
        private final Counter counter;

        Meters(MeterRegistry registry) {
            plain = registry.timer("plain", "route", "/items");
            histogram = Timer.builder("histogram").publishPercentileHistogram().register(registry);
            percentiles = Timer.builder("percentiles").publishPercentiles(0.5, 0.99).register(registry);
            summary = DistributionSummary.builder("summary").publishPercentileHistogram().register(registry);
            counter = registry.counter("counter");
        }
    }

    @State(Scope.Benchmark)
    public static class Ours {
        private final Meters meters = new Meters(new ParallaxMeterRegistry(new Catalog()));
    }

    @State(Scope.Benchmark)
    public static class Theirs {
        private final Meters meters = new Meters(new PrometheusMeterRegistry(PrometheusConfig.DEFAULT));
    }

    @Benchmark
    public void oursTimer(Values values, Ours ours) {
        ours.meters.plain.record(values.next(), TimeUnit.NANOSECONDS);
    }

    @Benchmark
    public void theirsTimer(Values values, Theirs theirs) {
        theirs.meters.plain.record(values.next(), TimeUnit.NANOSECONDS);
    }

    @Benchmark
    public void oursHistogram(Values values, Ours ours) {
        ours.meters.histogram.record(values.next(), TimeUnit.NANOSECONDS);
    }

    @Benchmark
    public void theirsHistogram(Values values, Theirs theirs) {
        theirs.meters.histogram.record(values.next(), TimeUnit.NANOSECONDS);
    }

    @Benchmark
    public void oursPercentiles(Values values, Ours ours) {
        ours.meters.percentiles.record(values.next(), TimeUnit.NANOSECONDS);
    }

    @Benchmark
    public void theirsPercentiles(Values values, Theirs theirs) {
        theirs.meters.percentiles.record(values.next(), TimeUnit.NANOSECONDS);
    }

    @Benchmark
    public void oursSummary(Values values, Ours ours) {
        ours.meters.summary.record(values.next());
    }

    @Benchmark
    public void theirsSummary(Values values, Theirs theirs) {
        theirs.meters.summary.record(values.next());
    }

    @Benchmark
    public void oursCounter(Values values, Ours ours) {
        values.next();
        ours.meters.counter.increment();
    }

    @Benchmark
    public void theirsCounter(Values values, Theirs theirs) {
        values.next();
        theirs.meters.counter.increment();
    }
}
