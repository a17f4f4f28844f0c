package dev.parallax.benchmarks;

import dev.parallax.opentelemetry.CatalogProducer;
import dev.parallax.prometheus.CatalogCollector;
import dev.parallax.recorder.Catalog;
import dev.parallax.recorder.Description;
import dev.parallax.recorder.Family;
import dev.parallax.recorder.LabelledRecorder;
import io.micrometer.core.instrument.Timer;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import io.opentelemetry.sdk.metrics.data.MetricData;
import io.opentelemetry.sdk.resources.Resource;
import io.prometheus.metrics.config.EscapingScheme;
import io.prometheus.metrics.expositionformats.ExpositionFormatWriter;
import io.prometheus.metrics.expositionformats.ExpositionFormats;
import io.prometheus.metrics.model.snapshots.MetricSnapshots;
import java.io.IOException;
import java.io.OutputStream;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/**
 * The cost of reading 10,000 series of durations, each with a new record since the last reading: the catalog alone, the
 * data of a bridge, the bytes of a scrape, and Micrometer's own registry with as many timers. Run with {@code java -cp
 * benchmarks.jar org.openjdk.jmh.Main ScrapeCost}.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MILLISECONDS)
public class ScrapeCost {
    private static final int SERIES = 10_000;
    private static final String[] ROUTES = new String[SERIES];

    static {
        for (int n = 0; n < SERIES; n++) {
            ROUTES[n] = "/items/" + n;
        }
    }

    @State(Scope.Benchmark)
    public static class Ours {
        private final Catalog catalog = new Catalog();
        private final LabelledRecorder durations = catalog.durations(
                Description.of("http.server.request.duration", "How long.").with("server.address", "shop"),
                SERIES,
                "http.request.method",
                "http.route",
                "http.response.status_code");
        private final CatalogCollector collector = new CatalogCollector(catalog);
        private final CatalogProducer producer = CatalogProducer.cumulative(catalog);
        private final SplittableRandom random = new SplittableRandom(1);

        /** Like a server that responds in around a millisecond, with a tail. */
        private void record(int times) {
            for (String route : ROUTES) {
                for (int n = 0; n < times; n++) {
                    double ns = 1e6 * Math.exp(random.nextDouble(-0.5, 0.5) + Math.pow(random.nextDouble(), 20) * 4);
                    durations.row("GET", route, "200").record((long) ns);
                }
            }
        }

        @Setup(Level.Trial)
        public void fill() {
            record(100);
        }

        @Setup(Level.Invocation)
        public void recordAgain() {
            record(1);
        }
    }

    @State(Scope.Benchmark)
    public static class Theirs {
        private final PrometheusMeterRegistry registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);

        @Setup(Level.Trial)
        public void fill() {
            for (String route : ROUTES) {
                Timer timer = Timer.builder("http.server.request.duration")
                        .tags("method", "GET", "route", route, "status", "200")
                        .serviceLevelObjectives(
                                Duration.ofMillis(5),
                                Duration.ofMillis(10),
                                Duration.ofMillis(25),
                                Duration.ofMillis(50),
                                Duration.ofMillis(100),
                                Duration.ofMillis(250),
                                Duration.ofMillis(500),
                                Duration.ofSeconds(1),
                                Duration.ofMillis(2_500),
                                Duration.ofSeconds(5),
                                Duration.ofSeconds(10))
                        .register(registry);
                timer.record(1, TimeUnit.MILLISECONDS);
            }
        }
    }

    @Benchmark
    public List<Family> catalog(Ours ours) {
        return ours.catalog.read();
    }

    @Benchmark
    public MetricSnapshots prometheus(Ours ours) {
        return ours.collector.collect();
    }

    @Benchmark
    public void prometheusText(Ours ours) throws IOException {
        write(ExpositionFormats.init().getPrometheusTextFormatWriter(), ours.collector.collect());
    }

    @Benchmark
    public void prometheusProtobuf(Ours ours) throws IOException {
        write(ExpositionFormats.init().getPrometheusProtobufWriter(), ours.collector.collect());
    }

    @Benchmark
    public Collection<MetricData> openTelemetry(Ours ours) {
        return ours.producer.produce(Resource.empty());
    }

    @Benchmark
    public MetricSnapshots micrometer(Theirs theirs) {
        return theirs.registry.getPrometheusRegistry().scrape();
    }

    @Benchmark
    public void micrometerText(Theirs theirs) throws IOException {
        write(
                ExpositionFormats.init().getPrometheusTextFormatWriter(),
                theirs.registry.getPrometheusRegistry().scrape());
    }

    private static void write(ExpositionFormatWriter writer, MetricSnapshots snapshots) throws IOException {
        writer.write(OutputStream.nullOutputStream(), snapshots, EscapingScheme.DEFAULT);
    }
}
