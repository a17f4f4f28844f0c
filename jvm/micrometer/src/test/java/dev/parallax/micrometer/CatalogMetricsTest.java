package dev.parallax.micrometer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.parallax.recorder.AmountRecorder;
import dev.parallax.recorder.Catalog;
import dev.parallax.recorder.Counter;
import dev.parallax.recorder.Description;
import dev.parallax.recorder.LabelledRecorder;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.MockClock;
import io.micrometer.core.instrument.binder.MeterBinder;
import io.micrometer.core.instrument.composite.CompositeMeterRegistry;
import io.micrometer.core.instrument.config.MeterFilter;
import io.micrometer.core.instrument.simple.SimpleConfig;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class CatalogMetricsTest {
    private static final Description DURATION = Description.of("http.client.request.duration", "How long.");
    private static final Description BYTES = Description.of("http.client.response.body.size", "By", "How large.");
    private static final Description COUNT = Description.of("messages", "{message}", "How many.");

    private final Catalog catalog = new Catalog();
    private final MockClock clock = new MockClock();
    private final MeterRegistry registry = new SimpleMeterRegistry(SimpleConfig.DEFAULT, clock);
    private final MeterBinder binder = new CatalogMetrics(catalog).withPercentiles(0.5);

    @Test
    void eachKindIsAMeterThatReportsTheSame() {
        LabelledRecorder durations = catalog.durations(DURATION.with("server.address", "a"), 10, "method");
        AmountRecorder sizes = catalog.amounts(BYTES);
        durations.row("GET").record(250_000_000);
        durations.row("GET").record(750_000_000);
        sizes.record(100L);
        catalog.counter(COUNT).add(3);
        catalog.upDownCounter(Description.of("active", "{request}", "")).add(2);
        catalog.gauge(Description.of("share", "1", ""), () -> 0.5);
        binder.bindTo(registry);
        var timer = registry.get("http.client.request.duration").tags("server.address", "a", "method", "GET").functionTimer();
        assertEquals(2, timer.count());
        assertEquals(1_000, timer.totalTime(TimeUnit.MILLISECONDS));
        assertEquals(750, registry.get("http.client.request.duration.max").timeGauge().value(TimeUnit.MILLISECONDS));
        double median = registry.get("http.client.request.duration.percentile")
                .tag("phi", "0.5")
                .timeGauge()
                .value(TimeUnit.MILLISECONDS);
        assertEquals(250, median, 250.0 / 128);
        assertEquals("bytes", registry.get("http.client.response.body.size").meter().getId().getBaseUnit());
        registry.get("http.client.response.body.size").meter().measure().forEach(measurement ->
                assertEquals(
                        Map.of("count", 1.0, "total", 100.0, "max", 100.0)
                                .get(measurement.getStatistic().getTagValueRepresentation()),
                        measurement.getValue()));
        assertEquals(3, registry.get("messages").functionCounter().count());
        assertEquals(2, registry.get("active").gauge().value());
        assertEquals(0.5, registry.get("share").gauge().value());
        assertEquals(5, registry.get("parallax.series").gauge().value());
    }

    @Test
    void seriesComeAndGoWithTheCatalog() {
        binder.bindTo(registry);
        Counter counter = catalog.counter(COUNT.with("queue", "q"));
        counter.increment();
        assertNull(registry.find("messages").meter());
        scrape();
        assertEquals(1, registry.get("messages").tag("queue", "q").functionCounter().count());
        counter.increment();
        assertEquals(1, registry.get("messages").functionCounter().count(), "of the same reading");
        scrape();
        assertEquals(2, registry.get("messages").functionCounter().count());
        assertTrue(catalog.remove("messages", Map.of("queue", "q")));
        scrape();
        assertNull(registry.find("messages").meter());
        catalog.counter(COUNT.with("queue", "q")).add(5);
        scrape();
        assertEquals(5, registry.get("messages").functionCounter().count());
    }

    /** If this fails, percentiles are reported of less than no durations. */
    @Test
    void latelyIsAllOfASeriesThatBeganAgain() {
        new CatalogMetrics(catalog).withPercentiles(0.9).bindTo(registry);
        record(10, 2_000_000);
        scrape();
        // Each time longer than what is lately, so that it begins with what was reported.
        clock.add(Duration.ofMinutes(10));
        scrape();
        assertTrue(catalog.remove(DURATION.name(), Map.of()));
        record(12, 1_000_000);
        record(8, 3_000_000);
        clock.add(Duration.ofMinutes(10));
        scrape();
        double p90 = registry.get("http.client.request.duration.percentile").timeGauge().value(TimeUnit.MILLISECONDS);
        assertEquals(3, p90, 3.0 / 128);
    }

    private void record(int count, long ns) {
        for (int n = 0; n < count; n++) {
            catalog.durations(DURATION).record(ns);
        }
    }

    /** Micrometer holds what a function is of weakly. If this fails, series fall to zero with the first collection. */
    @Test
    void seriesOutliveACollection() {
        registry.config().meterFilter(MeterFilter.denyNameStartsWith("parallax"));
        new CatalogMetrics(catalog).bindTo(registry);
        catalog.durations(DURATION).record(1_000_000);
        new CatalogMetrics(catalog).bindTo(registry);
        System.gc();
        assertEquals(1, registry.get(DURATION.name()).functionTimer().count());
        catalog.durations(DURATION).record(1_000_000);
        clock.add(Duration.ofSeconds(1));
        assertEquals(2, registry.get(DURATION.name()).functionTimer().count());
    }

    private void scrape() {
        clock.add(Duration.ofSeconds(1));
        registry.forEachMeter(meter -> meter.measure().forEach(measurement -> measurement.getValue()));
    }

    @Test
    void whatRacesWithScrapesIsInOneOfThem() throws InterruptedException {
        PrometheusMeterRegistry prometheus = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
        new CatalogMetrics(catalog).withMaxAge(Duration.ofMillis(20)).bindTo(prometheus);
        LabelledRecorder durations = catalog.durations(DURATION, 10, "method");
        int records = 300_000;
        List<Thread> writers = new ArrayList<>();
        for (int n = 0; n < 3; n++) {
            String method = "M" + n;
            Thread writer = new Thread(() -> {
                for (int i = 0; i < records; i++) {
                    durations.row(method).record(1_000_000);
                }
            });
            writers.add(writer);
            writer.start();
        }
        double last = 0;
        while (writers.stream().anyMatch(Thread::isAlive)) {
            double count = counts(prometheus.scrape());
            assertTrue(count >= last);
            last = count;
        }
        // One reads the catalog again, the next one shows what came with it.
        Thread.sleep(30);
        prometheus.scrape();
        Thread.sleep(30);
        assertEquals(3.0 * records, counts(prometheus.scrape()));
    }

    private static double counts(String scrape) {
        return scrape.lines()
                .filter(line -> line.startsWith("http_client_request_duration_seconds_count"))
                .mapToDouble(line -> Double.parseDouble(line.substring(line.lastIndexOf(' '))))
                .sum();
    }

    /** If this fails, each scrape makes new series of those that are there. */
    @Test
    void aRegistryOfOursOnTheSameCatalogIsNotShownToItself() {
        ParallaxMeterRegistry ours = new ParallaxMeterRegistry(catalog, clock);
        ours.counter("mine").increment();
        binder.bindTo(ours);
        assertEquals(1, ours.getMeters().size());
    }

    @Test
    void aCompositeShowsItToAllOfItsRegistries() {
        CompositeMeterRegistry composite = new CompositeMeterRegistry(clock);
        composite.add(registry);
        catalog.counter(COUNT).add(4);
        binder.bindTo(composite);
        assertEquals(4, registry.get("messages").functionCounter().count());
    }
}
