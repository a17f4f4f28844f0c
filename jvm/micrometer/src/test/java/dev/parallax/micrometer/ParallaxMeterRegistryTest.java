package dev.parallax.micrometer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import dev.parallax.prometheus.CatalogCollector;
import dev.parallax.recorder.Catalog;
import dev.parallax.recorder.Description;
import dev.parallax.recorder.Distribution;
import dev.parallax.recorder.Family;
import io.micrometer.core.instrument.Clock;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.DistributionSummary;
import io.micrometer.core.instrument.FunctionTimer;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.LongTaskTimer;
import io.micrometer.core.instrument.Measurement;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.MockClock;
import io.micrometer.core.instrument.Statistic;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.TimeGauge;
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.binder.jvm.JvmMemoryMetrics;
import io.micrometer.core.instrument.binder.jvm.JvmThreadMetrics;
import io.micrometer.core.instrument.composite.CompositeMeterRegistry;
import io.micrometer.core.instrument.config.MeterFilter;
import io.micrometer.core.instrument.distribution.DistributionStatisticConfig;
import io.micrometer.core.instrument.distribution.HistogramSnapshot;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import io.prometheus.metrics.config.EscapingScheme;
import io.prometheus.metrics.expositionformats.ExpositionFormats;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

class ParallaxMeterRegistryTest {
    private final Catalog catalog = new Catalog();
    private final MockClock clock = new MockClock();
    private final MeterRegistry registry = new ParallaxMeterRegistry(catalog, clock);

    @Test
    void allThatSeveralThreadsRecordIsThereAndInTheCatalogAsWell() throws InterruptedException {
        int records = 200_000;
        List<Thread> threads = new ArrayList<>();
        for (int n = 0; n < 3; n++) {
            Thread thread = new Thread(() -> {
                for (int i = 0; i < records; i++) {
                    registry.timer("timer", "a", "b").record(1_234, TimeUnit.NANOSECONDS);
                    registry.counter("counter").increment(0.5);
                    registry.summary("summary").record(2.25);
                }
            });
            threads.add(thread);
            thread.start();
        }
        long last = 0;
        while (threads.stream().anyMatch(Thread::isAlive)) {
            HistogramSnapshot snapshot = registry.timer("timer", "a", "b").takeSnapshot();
            assertEquals(snapshot.count() * 1_234.0, snapshot.total());
            assertTrue(snapshot.count() >= last);
            last = snapshot.count();
        }
        Timer timer = registry.timer("timer", "a", "b");
        assertEquals(3 * records, timer.count());
        assertEquals(3 * records * 1_234.0, timer.totalTime(TimeUnit.NANOSECONDS));
        assertEquals(3 * records / 2.0, registry.counter("counter").count());
        assertEquals(3 * records * 2.25, registry.summary("summary").totalAmount());
        assertEquals(3 * records, spread("timer").count());
        assertEquals(3 * records * 2.25, spread("summary").sum());
        assertEquals(3 * records / 2.0, value("counter"));
        assertEquals(Map.of("a", "b"), point("timer").labels());
    }

    @Test
    void percentilesAndBucketsAreThoseOfWhatWasRecorded() {
        Timer timer = Timer.builder("timer")
                .publishPercentiles(0, 0.5, 0.99, 1)
                .serviceLevelObjectives(Duration.ofMillis(10), Duration.ofMillis(100), Duration.ofSeconds(1))
                .register(registry);
        for (int ms = 1; ms <= 1_000; ms++) {
            timer.record(ms, TimeUnit.MILLISECONDS);
        }
        HistogramSnapshot snapshot = timer.takeSnapshot();
        assertEquals(1_000, snapshot.count());
        double[] planted = {1, 500, 990, 1_000};
        for (int i = 0; i < planted.length; i++) {
            double value = snapshot.percentileValues()[i].value(TimeUnit.MILLISECONDS);
            assertTrue(value >= planted[i] && value <= planted[i] * (1 + 1.0 / 128), () -> "" + value);
        }
        assertEquals(10, snapshot.histogramCounts()[0].count());
        assertEquals(100, snapshot.histogramCounts()[1].count());
        assertEquals(1_000, snapshot.histogramCounts()[2].count());
        assertEquals(1_000, snapshot.max(TimeUnit.MILLISECONDS));
        assertEquals(500.5, snapshot.mean(TimeUnit.MILLISECONDS), 1e-9);
    }

    /** If this fails, a scrape that comes late misses the worst there was, or one of an hour ago is reported for ever. */
    @Test
    void theLargestIsThatOfLatelyAndNeverMissed() {
        Timer timer = Timer.builder("timer").distributionStatisticExpiry(Duration.ofMinutes(2)).register(registry);
        DistributionSummary summary = registry.summary("summary");
        timer.record(5, TimeUnit.SECONDS);
        summary.record(7);
        clock.add(Duration.ofHours(1));
        assertEquals(5, timer.max(TimeUnit.SECONDS), "nobody has read it yet");
        assertEquals(7, summary.max());
        timer.record(1, TimeUnit.SECONDS);
        clock.add(Duration.ofMinutes(1));
        assertEquals(5, timer.max(TimeUnit.SECONDS));
        clock.add(Duration.ofMinutes(1));
        // Of an interval in which it is not the longest so far: the end of its bucket.
        assertEquals(1, timer.max(TimeUnit.SECONDS), 1.0 / 128);
        clock.add(Duration.ofMinutes(2));
        assertEquals(0, timer.max(TimeUnit.SECONDS));
        assertEquals(0, summary.max());
        assertEquals(2, timer.count());
    }

    @Test
    void filtersAndCompositesWork() {
        registry.config()
                .meterFilter(MeterFilter.denyNameStartsWith("denied"))
                .meterFilter(MeterFilter.ignoreTags("user"))
                .meterFilter(MeterFilter.renameTag("renamed", "old", "new"))
                .meterFilter(new MeterFilter() {
                    @Override
                    public DistributionStatisticConfig configure(Meter.Id id, DistributionStatisticConfig config) {
                        return DistributionStatisticConfig.builder().percentiles(0.5).build().merge(config);
                    }
                })
                .commonTags("host", "h");
        CompositeMeterRegistry composite = new CompositeMeterRegistry(clock);
        Counter before = composite.counter("before");
        before.increment();
        composite.add(registry);
        before.increment();
        composite.timer("timer", "user", "1").record(Duration.ofMillis(3));
        composite.timer("timer", "user", "2").record(Duration.ofMillis(3));
        composite.counter("denied.count").increment();
        composite.counter("renamed", "old", "x").increment();
        assertEquals(1, value("before"), "what came before is not in it");
        assertEquals(2, spread("timer").count());
        assertEquals(Map.of("host", "h"), point("timer").labels());
        assertEquals(1, registry.get("timer").timer().takeSnapshot().percentileValues().length);
        assertTrue(catalog.read().stream().noneMatch(family -> family.name().startsWith("denied")));
        assertEquals(Map.of("host", "h", "new", "x"), point("renamed").labels());
        composite.remove(registry);
        composite.counter("renamed", "old", "x").increment();
        assertEquals(1, value("renamed"));
    }

    @Test
    void allKindsOfMetersStandInTheCatalog() {
        List<String> list = new ArrayList<>(List.of("a", "b"));
        registry.gaugeCollectionSize("size", Tags.empty(), list);
        TimeGauge.builder("age", () -> 1_500, TimeUnit.MILLISECONDS).register(registry);
        FunctionTimer.builder("fetch", list, l -> 3, l -> 600, TimeUnit.MILLISECONDS).register(registry);
        LongTaskTimer.Sample sample = LongTaskTimer.builder("job").register(registry).start();
        clock.add(Duration.ofSeconds(4));
        Meter.builder("own", Meter.Type.OTHER, List.of(new Measurement(() -> 8.0, Statistic.VALUE))).register(registry);
        registry.more().counter("calls", Tags.empty(), list, l -> 9);
        assertEquals(2, value("size"));
        assertEquals(1.5, value("age"));
        assertEquals(3, value("fetch.count"));
        assertEquals(0.6, value("fetch.total"), 1e-12);
        assertEquals(1, value("job.active"));
        assertEquals(4, value("job.duration"));
        sample.stop();
        assertEquals(0, value("job.active"));
        assertEquals(8, value("own"));
        assertEquals(9, value("calls"));
        registry.forEachMeter(registry::remove);
        assertTrue(catalog.read().isEmpty());
        registry.gauge("size", 3);
        registry.close();
        assertTrue(catalog.read().isEmpty());
    }

    /** Micrometer lets one name have two kinds; the catalog does not, and the application must not notice. */
    @Test
    void aNameOfAnotherKindIsMeasuredAndNotShown() {
        registry.counter("name", "a", "1").increment();
        Timer timer = registry.timer("name", "a", "2");
        timer.record(Duration.ofMillis(1));
        assertEquals(1, timer.count());
        assertEquals(1, value("name"));
        registry.remove(timer);
        assertEquals(1, value("name"));
        catalog.gauge(Description.of("mine", ""), () -> 1);
        assertEquals(0, registry.counter("mine").count());
    }

    @Test
    void aMeterThatWasRemovedAndComesAgainCountsFromZero() {
        Timer first = registry.timer("timer");
        first.record(Duration.ofMillis(1));
        registry.remove(first);
        assertSame(registry.timer("timer"), registry.timer("timer"));
        assertEquals(0, registry.timer("timer").count());
        assertEquals(0, spread("timer").count());
    }

    @Test
    void aRecordTakesNoMemory() {
        Timer timer = Timer.builder("timer").publishPercentileHistogram().register(registry);
        Counter counter = registry.counter("counter");
        DistributionSummary summary = registry.summary("summary");
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long least = Long.MAX_VALUE;
        for (int round = 0; round < 20; round++) {
            long before = threads.getCurrentThreadAllocatedBytes();
            for (int i = 0; i < 10_000; i++) {
                timer.record(1_000 + i, TimeUnit.NANOSECONDS);
                counter.increment();
                summary.record(i);
            }
            least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
        }
        assertEquals(0, least);
    }

    /** If this fails, dashboards that were made for Micrometer's own Prometheus registry are empty. */
    @Test
    void prometheusGetsTheNamesThatMicrometersOwnRegistryGives() throws IOException {
        PrometheusMeterRegistry theirs = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
        PrometheusRegistry ours = new PrometheusRegistry();
        ours.register(new CatalogCollector(catalog));
        Object kept = new Object();
        for (MeterRegistry to : List.of(theirs, registry)) {
            new JvmMemoryMetrics().bindTo(to);
            new JvmThreadMetrics().bindTo(to);
            Timer.builder("http.server.requests")
                    .tag("status", "200")
                    .publishPercentileHistogram()
                    .register(to)
                    .record(Duration.ofMillis(2));
            to.counter("orders.placed", "shop", "a").increment();
            DistributionSummary.builder("upload").baseUnit("bytes").serviceLevelObjectives(9).register(to).record(7);
            Gauge.builder("queue.size", kept, o -> 3).register(to);
        }
        Set<String> wanted = names(theirs.scrape());
        // The largest is in the buckets.
        wanted.removeIf(name -> name.startsWith("http_server_requests_seconds_max") || name.startsWith("upload_bytes_max"));
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        ExpositionFormats.init().getPrometheusTextFormatWriter().write(bytes, ours.scrape(), EscapingScheme.DEFAULT);
        assertEquals(wanted, names(bytes.toString(StandardCharsets.UTF_8)));
    }

    /** With labels, and without bounds, which are a choice. */
    private static Set<String> names(String text) {
        return text.lines()
                .filter(line -> !line.startsWith("#"))
                .map(line -> line.substring(0, line.lastIndexOf(' ')).replaceAll(",?le=\"[^\"]*\"", "").replace("{}", ""))
                .collect(Collectors.toCollection(TreeSet::new));
    }

    @Test
    void aSampleOnTheSystemsClockIsOfTheTimeThatPassed() throws InterruptedException {
        MeterRegistry real = new ParallaxMeterRegistry(new Catalog(), Clock.SYSTEM);
        Timer.Sample sample = Timer.start(real);
        long before = System.nanoTime();
        Thread.sleep(20);
        long slept = System.nanoTime() - before;
        sample.stop(real.timer("t"));
        assertTrue(real.timer("t").totalTime(TimeUnit.NANOSECONDS) >= slept);
    }

    private Family.Point point(String name) {
        List<Family.Point> points = catalog.read().stream()
                .filter(family -> family.name().equals(name))
                .findAny()
                .orElseThrow()
                .points();
        assertEquals(1, points.size());
        return points.get(0);
    }

    private double value(String name) {
        return ((Family.Value) point(name)).value();
    }

    private Distribution spread(String name) {
        return ((Family.Histogram) point(name)).distribution();
    }
}
