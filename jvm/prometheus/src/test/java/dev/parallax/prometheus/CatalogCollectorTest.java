package dev.parallax.prometheus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.parallax.recorder.AmountRecorder;
import dev.parallax.recorder.Catalog;
import dev.parallax.recorder.Description;
import dev.parallax.recorder.LabelledRecorder;
import dev.parallax.recorder.Recorder;
import io.prometheus.metrics.config.EscapingScheme;
import io.prometheus.metrics.expositionformats.ExpositionFormatWriter;
import io.prometheus.metrics.expositionformats.ExpositionFormats;
import io.prometheus.metrics.expositionformats.generated.com_google_protobuf_4_36_2.Metrics;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** Through the client's own registry and writers: what a Prometheus would get. */
class CatalogCollectorTest {
    private static final Pattern SAMPLE = Pattern.compile("([a-zA-Z_:][a-zA-Z0-9_:]*)(\\{.*})? (\\S+)( \\S+)?");
    private static final Description DURATION = Description.of("http.client.request.duration", "How long.");
    private static final ExpositionFormats FORMATS = ExpositionFormats.init();

    private final Catalog catalog = new Catalog();
    private final PrometheusRegistry registry = new PrometheusRegistry();

    @Test
    void namesUnitsAndLabelsAreThoseThatPrometheusExpects() throws IOException {
        registry.register(new CatalogCollector(catalog).withDurationBounds(.1, 1));
        catalog.durations(DURATION.with("server.address", "a \"b\"\n")).record(50_000_000);
        catalog.counter(Description.of("db.client.connection.timeouts", "{timeout}", "")).add(3);
        catalog.counter(Description.of("messages.total", "", "")).increment();
        catalog.upDownCounter(Description.of("http.server.active_requests", "{request}", "").with("le", "x").with("e", "")).add(2);
        catalog.gauge(Description.of("jvm.memory.total", "By", ""), () -> 4);
        catalog.gauge(Description.of("build.info", "", ""), () -> 1);
        catalog.gauge(Description.of("jvm.cpu.utilization", "1", ""), () -> 0.25);
        catalog.gauge(Description.of("net.speed", "MBy/s", ""), () -> 7);
        catalog.counter(Description.of("net.io", "By", ""), () -> 9);
        Map<String, Double> text = text(FORMATS.getPrometheusTextFormatWriter());
        String label = "{server_address=\"a \\\"b\\\"\\n\"";
        assertEquals(1, text.get("http_client_request_duration_seconds_bucket" + label + ",le=\"0.1\"}"));
        assertEquals(0.05, text.get("http_client_request_duration_seconds_sum" + label + "}"));
        assertEquals(3, text.get("db_client_connection_timeouts_total"));
        assertEquals(1, text.get("messages_total"));
        assertEquals(2, text.get("http_server_active_requests{exported_le=\"x\"}"));
        assertEquals(4, text.get("jvm_memory_total_bytes"));
        assertEquals(1, text.get("build_info"));
        assertEquals(0.25, text.get("jvm_cpu_utilization_ratio"));
        assertEquals(7, text.get("net_speed_megabytes_per_second"));
        assertEquals(9, text.get("net_io_bytes_total"));
        Map<String, Double> open = text(FORMATS.getOpenMetricsTextFormatWriter());
        assertEquals(3, open.get("db_client_connection_timeouts_total"));
        assertEquals(1, open.get("http_client_request_duration_seconds_count" + label + "}"));
    }

    @Test
    void whatWouldMakeOneSeriesOfTwoIsLeftOutAndTheRestIsReported() throws IOException {
        registry.register(new CatalogCollector(catalog));
        catalog.counter(Description.of("a.b", "", "")).add(1);
        catalog.counter(Description.of("a_b", "", "")).add(2);
        catalog.durations(Description.of("c", "")).record(1);
        catalog.gauge(Description.of("c_seconds_count", "", ""), () -> 5);
        catalog.gauge(Description.of("a.b.total", "", ""), () -> 5);
        catalog.upDownCounter(Description.of("d", "", "").with("x.y", "1")).add(1);
        catalog.upDownCounter(Description.of("d", "", "").with("x_y", "1")).add(2);
        catalog.upDownCounter(Description.of("d", "", "").with("x.y", "1").with("x_y", "2")).add(3);
        catalog.counter(Description.of("e", "", "").with("x", "1"), () -> -1);
        catalog.counter(Description.of("e", "", "").with("x", "2"), () -> 1);
        catalog.gauge(Description.of("0 strange äö", "", ""), () -> 5);
        Map<String, Double> text = text(FORMATS.getPrometheusTextFormatWriter());
        assertEquals(1, text.get("a_b_total"));
        assertEquals(1, text.get("c_seconds_count"));
        assertEquals(1, text.get("d{x_y=\"1\"}"));
        assertEquals(3, text.get("d{x_y=\"1;2\"}"));
        assertEquals(5, text.get("_0_strange___"));
        assertEquals(1, text.get("e_total{x=\"2\"}"));
    }

    @Test
    void boundsRise() {
        CatalogCollector collector = new CatalogCollector(catalog);
        assertThrows(IllegalArgumentException.class, () -> collector.withDurationBounds(1, 1));
        assertThrows(IllegalArgumentException.class, () -> collector.withAmountBounds(Double.POSITIVE_INFINITY));
        assertThrows(IllegalArgumentException.class, () -> collector.withSchema(6));
    }

    /** Each value in the bucket that the schema's definition gives it, in the bytes that a Prometheus would get. */
    @Test
    void aNativeHistogramHasEachDurationWhereItBelongs() throws IOException {
        for (int schema : new int[] {5, 3, 0}) {
            Catalog one = new Catalog();
            PrometheusRegistry registry = new PrometheusRegistry();
            registry.register(new CatalogCollector(one).withSchema(schema));
            Recorder recorder = one.durations(DURATION);
            Map<Integer, Long> planted = new TreeMap<>();
            SplittableRandom random = new SplittableRandom(schema);
            double sum = 0;
            int records = 10_000;
            for (int n = 0; n < records; n++) {
                long ns = (long) Math.exp(random.nextDouble(0, Math.log(3.6e12)));
                recorder.record(ns);
                planted.merge(bucket(ns / 1e9, schema), 1L, Long::sum);
                sum += ns;
            }
            recorder.record(0);
            Metrics.Histogram histogram = protobuf(registry).get(0).getMetric(0).getHistogram();
            assertEquals(schema, histogram.getSchema());
            assertEquals(1, histogram.getZeroCount());
            assertEquals(records + 1, histogram.getSampleCount());
            assertEquals(sum / 1e9, histogram.getSampleSum(), sum / 1e9 * 1e-15);
            assertEquals(planted, buckets(histogram));
        }
    }

    /** A caller that scrapes while others record sees values that never decrease, and eventually all of them. */
    @Test
    void noScrapeLosesARecordThatRacesWithIt() throws Exception {
        registry.register(new CatalogCollector(catalog));
        LabelledRecorder durations = catalog.durations(DURATION, 10, "method");
        AmountRecorder sizes = catalog.amounts(Description.of("http.client.response.body.size", "By", ""));
        int records = 300_000;
        long ns = 1_234_567;
        List<Thread> writers = new ArrayList<>();
        for (int n = 0; n < 3; n++) {
            String method = "M" + n;
            Thread writer = new Thread(() -> {
                for (int i = 0; i < records; i++) {
                    durations.row(method).record(ns);
                    sizes.record(4_096L);
                }
            });
            writers.add(writer);
            writer.start();
        }
        Map<String, Double> before = new HashMap<>();
        while (writers.stream().anyMatch(Thread::isAlive)) {
            Map<String, Double> now = text(FORMATS.getPrometheusTextFormatWriter());
            before.forEach((series, value) -> assertTrue(now.get(series) >= value, series));
            before.putAll(now);
            for (int n = 0; n < 3; n++) {
                String labels = "{method=\"M" + n + "\"}";
                Double count = now.get("http_client_request_duration_seconds_count" + labels);
                if (count != null) {
                    // Exactly the same records: the sum agrees with the count.
                    double sum = count.longValue() * ns / 1e9;
                    assertEquals(sum, now.get("http_client_request_duration_seconds_sum" + labels), sum * 1e-15);
                }
            }
        }
        Map<String, Double> last = text(FORMATS.getPrometheusTextFormatWriter());
        for (int n = 0; n < 3; n++) {
            String labels = "{method=\"M" + n + "\"";
            assertEquals(records, last.get("http_client_request_duration_seconds_count" + labels + "}"));
            assertEquals(records, last.get("http_client_request_duration_seconds_bucket" + labels + ",le=\"+Inf\"}"));
            assertEquals(0.0 + records, last.get("http_client_request_duration_seconds_bucket" + labels + ",le=\"0.005\"}"));
        }
        assertEquals(3 * records * 4_096.0, last.get("http_client_response_body_size_bytes_sum"));
        assertEquals(0, last.get("http_client_response_body_size_bytes_bucket{le=\"1024.0\"}"));
        assertEquals(3 * records, last.get("http_client_response_body_size_bytes_bucket{le=\"4096.0\"}"));
        long inProtobuf = protobuf(registry).stream()
                .flatMap(family -> family.getMetricList().stream())
                .mapToLong(metric -> buckets(metric.getHistogram()).values().stream().mapToLong(n -> n).sum())
                .sum();
        assertEquals(6L * records, inProtobuf);
    }

    /** By definition: above base^(i - 1) and at most base^i. */
    private static int bucket(double value, int schema) {
        int i = (int) Math.floor(Math.log(value) / Math.log(2) * Math.scalb(1, schema)) - 1;
        while (Math.pow(2, Math.scalb(i, -schema)) < value) {
            i++;
        }
        return i;
    }

    private static Map<Integer, Long> buckets(Metrics.Histogram histogram) {
        Map<Integer, Long> counts = new TreeMap<>();
        int number = 0;
        long count = 0;
        int delta = 0;
        for (Metrics.BucketSpan span : histogram.getPositiveSpanList()) {
            number += span.getOffset();
            for (int i = 0; i < span.getLength(); i++) {
                count += histogram.getPositiveDelta(delta++);
                if (count != 0) {
                    counts.put(number, count);
                }
                number++;
            }
        }
        return counts;
    }

    private static List<Metrics.MetricFamily> protobuf(PrometheusRegistry registry) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        FORMATS.getPrometheusProtobufWriter().write(bytes, registry.scrape(), EscapingScheme.DEFAULT);
        ByteArrayInputStream in = new ByteArrayInputStream(bytes.toByteArray());
        List<Metrics.MetricFamily> families = new ArrayList<>();
        for (Metrics.MetricFamily family = Metrics.MetricFamily.parseDelimitedFrom(in);
                family != null;
                family = Metrics.MetricFamily.parseDelimitedFrom(in)) {
            families.add(family);
        }
        return families;
    }

    /** Each sample by its name and labels; every line is one, or a comment. */
    private Map<String, Double> text(ExpositionFormatWriter writer) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        writer.write(bytes, registry.scrape(), EscapingScheme.DEFAULT);
        Map<String, Double> samples = new HashMap<>();
        for (String line : bytes.toString(StandardCharsets.UTF_8).split("\n")) {
            if (!line.startsWith("#")) {
                Matcher sample = SAMPLE.matcher(line);
                assertTrue(sample.matches(), line);
                String labels = sample.group(2) == null ? "" : sample.group(2);
                Double twice = samples.put(sample.group(1) + labels, Double.valueOf(sample.group(3)));
                assertEquals(null, twice, line);
            }
        }
        assertNotNull(samples);
        return samples;
    }
}
