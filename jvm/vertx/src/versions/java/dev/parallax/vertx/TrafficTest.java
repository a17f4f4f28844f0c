package dev.parallax.vertx;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.parallax.recorder.Catalog;
import dev.parallax.recorder.Description;
import dev.parallax.recorder.Family;
import dev.parallax.recorder.Kind;
import dev.parallax.vertx.metrics.ParallaxMetricsFactory;
import io.micrometer.core.instrument.Measurement;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Statistic;
import io.micrometer.core.instrument.Tag;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.vertx.core.Vertx;
import io.vertx.core.VertxOptions;
import io.vertx.core.metrics.MetricsOptions;
import io.vertx.micrometer.MicrometerMetricsFactory;
import io.vertx.micrometer.MicrometerMetricsOptions;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/**
 * Real servers and clients of this module's Vert.x version, compared with vertx-micrometer-metrics under the same
 * traffic.
 */
class TrafficTest {
    private static final String VERSION = System.getProperty("parallax.vertx.version");

    private final Catalog catalog = new Catalog();

    @Test
    void allThatWasSentIsCounted() throws Exception {
        Vertx vertx = ours(catalog);
        Traffic traffic = new Traffic(vertx);
        traffic.http();
        int http1 = Traffic.GETS + Traffic.POSTS + Traffic.MISSING;
        int answered = http1 + Traffic.STREAMS;
        until("all requests have ended", () -> total("vertx.http.server.active.requests", all()) == 0);
        for (String name : List.of("requests", "response.time", "response.bytes")) {
            assertEquals(Traffic.GETS, total("vertx.http.server." + name, where("method", "GET", "code", "200")), name);
            assertEquals(Traffic.POSTS, total("vertx.http.server." + name, where("method", "POST", "code", "200")), name);
            assertEquals(Traffic.MISSING, total("vertx.http.server." + name, where("method", "GET", "code", "404")), name);
            assertEquals(Traffic.STREAMS, total("vertx.http.server." + name, where("method", "PUT", "code", "200")), name);
            assertEquals(answered, total("vertx.http.server." + name, all()), name);
        }
        assertEquals(answered * Traffic.ANSWER_BYTES, sum("vertx.http.server.response.bytes", all()));
        assertEquals(Traffic.POSTS * Traffic.POST_BYTES, sum("vertx.http.server.request.bytes", where("method", "POST")));
        assertEquals(1, total("vertx.http.server.request.resets", all()));

        assertEquals(answered + 1, total("vertx.http.client.requests", all()));
        assertEquals(answered, total("vertx.http.client.responses", all()));
        assertEquals(Traffic.MISSING, total("vertx.http.client.responses", where("code", "404")));
        assertEquals(answered, total("vertx.http.client.response.time", all()));
        assertEquals(answered * Traffic.ANSWER_BYTES, sum("vertx.http.client.response.bytes", all()));
        assertEquals(Traffic.POSTS * Traffic.POST_BYTES, sum("vertx.http.client.request.bytes", where("method", "POST")));
        assertEquals(0, total("vertx.http.client.active.requests", all()));
        for (String side : List.of("client", "server")) {
            until("connections are closed", () -> total("vertx.http." + side + ".active.connections", all()) == 0);
            assertTrue(total("vertx.http." + side + ".bytes.read", all()) > Traffic.POSTS * 13);
        }
        assertEquals(
                total("vertx.http.server.bytes.read", all()), total("vertx.http.client.bytes.written", all()), 2_000);
        // There is one connection, so every request that did not find it free waited for it.
        boolean isQueueOfClient = VERSION.equals("45");
        String waits = isQueueOfClient ? "vertx.http.client.queue.time" : "vertx.pool.queue.time";
        assertTrue(total(waits, isQueueOfClient ? all() : where("pool_type", "http")) >= http1 - 1);

        traffic.tasks();
        Predicate<Map<String, String>> workers = where("pool_type", "worker");
        until("all tasks are done", () -> total("vertx.pool.completed", workers) >= Traffic.TASKS);
        assertEquals(total("vertx.pool.usage", workers), total("vertx.pool.completed", workers));
        assertEquals(0, total("vertx.pool.in.use", workers));
        assertEquals(0, total("vertx.pool.queue.pending", workers));

        traffic.eventBus();
        int requests = Traffic.MESSAGES + 1;
        until("all messages are processed", () -> total("vertx.eventbus.pending", all()) == 0);
        assertEquals(Traffic.MESSAGES, total("vertx.eventbus.published", all()));
        assertEquals(1, total("vertx.eventbus.reply.failures", all()));
        assertEquals(0, total("vertx.eventbus.handlers", all()));
        // Requests, sent messages, the same number of published ones, and replies, which count as sent.
        assertTrue(total("vertx.eventbus.processed", all()) >= 3 * Traffic.MESSAGES + 1);
        assertTrue(total("vertx.eventbus.sent", where("side", "local")) >= 2 * Traffic.MESSAGES + requests - Traffic.MESSAGES);

        traffic.tcp();
        for (String side : List.of("client", "server")) {
            until("connections are closed", () -> total("vertx.net." + side + ".active.connections", all()) == 0);
            assertEquals(Traffic.TCP_BYTES, total("vertx.net." + side + ".bytes.read", all()));
            assertEquals(Traffic.TCP_BYTES, total("vertx.net." + side + ".bytes.written", all()));
        }
        traffic.datagrams();
        until("all have come", () -> total("vertx.datagram.bytes.read", all()) == Traffic.DATAGRAMS);
        assertEquals(Traffic.DATAGRAMS, total("vertx.datagram.bytes.written", all()));
        assertEquals(Traffic.DATAGRAMS * Traffic.DATAGRAM_BYTES, sum("vertx.datagram.bytes.read", all()));

        traffic.webSocket();
        until("it is closed", () -> total("vertx.http.server.active.ws.connections", all()) == 0);
        until("it is closed", () -> total("vertx.http.client.active.ws.connections", all()) == 0);
        Traffic.done(vertx.close());
    }

    /** If this fails, a dashboard has a gap. */
    @Test
    void namesAndLabelsAreThoseThatDashboardsKnow() throws Exception {
        MeterRegistry registry = new SimpleMeterRegistry();
        run(theirs(registry, null));
        run(ours(catalog));
        assertEquals(lines(names(registry)), lines(names(catalog)));
        assertTrue(names(registry).size() >= 40, names(registry).toString());
        assertEquals(lines(counts(registry)), lines(counts(catalog)));
        assertTrue(counts(registry).size() > 30, counts(registry).toString());
    }

    @Test
    void soAreAllLabelsThatThereAre() throws Exception {
        MeterRegistry registry = new SimpleMeterRegistry();
        run(theirs(registry, EnumSet.allOf(io.vertx.micrometer.Label.class)));
        Set<String> known = Arrays.stream(io.vertx.micrometer.Label.values()).map(Object::toString).collect(Collectors.toSet());
        Set<Label> labels = Arrays.stream(Label.values()).filter(label -> known.contains(label.text)).collect(Collectors.toSet());
        assertEquals(known.size(), labels.size());
        run(ours(new SeriesOptions(catalog, labels)));
        assertEquals(lines(names(registry)), lines(names(catalog)));
    }

    @Test
    void aDomainThatIsDisabledIsNotMeasured() throws Exception {
        run(ours(new SeriesOptions(catalog, Set.of(), Set.of("http.server", "eventbus", "datagram"), List.of(), 10)));
        Set<String> domains = new HashSet<>();
        for (Family family : catalog.read()) {
            domains.add(family.name().replaceAll("^vertx\\.((http|net)\\.\\w+|\\w+)\\..*", "$1"));
        }
        assertEquals(Set.of("http.client", "net.client", "net.server", "pool"), domains);
    }

    @Test
    void nothingHasToBeMeasured() throws Exception {
        Set<String> none = Set.of(
                "http.server", "http.client", "net.server", "net.client", "pool", "eventbus", "datagram", "sql");
        run(ours(new SeriesOptions(catalog, Set.of(), none, List.of(), 10)));
        assertEquals(List.of(), catalog.read());
    }

    /** If this fails, requests break when the application uses a metric name for something else. */
    @Test
    void aNameThatIsTakenBreaksNothing() throws Exception {
        catalog.gauge(Description.of("vertx.http.server.requests", "", "planted"), () -> 1);
        catalog.gauge(Description.of("vertx.eventbus.handlers", "", "planted"), () -> 1);
        run(ours(catalog));
        assertEquals(1, total("vertx.http.server.requests", all()));
        assertTrue(total("vertx.http.server.response.time", all()) > 0);
    }

    private static void run(Vertx vertx) throws Exception {
        new Traffic(vertx).all();
        Traffic.done(vertx.close());
    }

    private static Vertx ours(Catalog catalog) {
        return vertx(new ParallaxMetricsFactory(catalog));
    }

    private static Vertx ours(SeriesOptions options) {
        return vertx(new ParallaxMetricsFactory(options));
    }

    private static Vertx vertx(ParallaxMetricsFactory factory) {
        return Vertx.builder()
                .with(new VertxOptions().setMetricsOptions(new MetricsOptions().setEnabled(true)))
                .withMetrics(factory)
                .build();
    }

    private static Vertx theirs(MeterRegistry registry, Set<io.vertx.micrometer.Label> labels) {
        MicrometerMetricsOptions options = new MicrometerMetricsOptions()
                .setEnabled(true)
                .setRegistryName("planted" + System.nanoTime());
        if (labels != null) {
            options.setLabels(labels);
        }
        return Vertx.builder()
                .with(new VertxOptions().setMetricsOptions(options))
                .withMetrics(new MicrometerMetricsFactory(registry))
                .build();
    }

    private static Set<String> names(MeterRegistry registry) {
        Set<String> names = new TreeSet<>();
        for (Meter meter : registry.getMeters()) {
            Set<String> keys = meter.getId().getTags().stream().map(Tag::getKey).collect(Collectors.toCollection(TreeSet::new));
            names.add(meter.getId().getName() + " " + kind(meter.getId().getType()) + keys);
        }
        return names;
    }

    private static String kind(Meter.Type type) {
        return switch (type) {
            case COUNTER -> "COUNTER";
            case TIMER -> "DURATIONS";
            case DISTRIBUTION_SUMMARY -> "AMOUNTS";
            default -> "GAUGE";
        };
    }

    private static Set<String> names(Catalog catalog) {
        Set<String> names = new TreeSet<>();
        for (Family family : catalog.read()) {
            String kind = family.kind().name().replace("UP_DOWN", "GAUGE");
            family.points().forEach(point -> names.add(family.name() + " " + kind + new TreeSet<>(point.labels().keySet())));
        }
        return names;
    }

    /**
     * Counts by name and labels. Without pools, which also run Vert.x' own tasks, and without HTTP bytes on the wire,
     * since each request contains the port's digits.
     */
    private static boolean isCompared(String name) {
        return !name.startsWith("vertx.pool.") && !name.matches("vertx\\.http\\..*\\.bytes\\.(read|written)");
    }

    private static Set<String> counts(MeterRegistry registry) {
        Set<String> counts = new TreeSet<>();
        for (Meter meter : registry.getMeters()) {
            String name = meter.getId().getName();
            TreeMap<String, String> labels = new TreeMap<>();
            meter.getId().getTags().forEach(tag -> labels.put(tag.getKey(), tag.getValue()));
            for (Measurement one : meter.measure()) {
                boolean isSum = one.getStatistic() == Statistic.TOTAL && meter.getId().getType() == Meter.Type.DISTRIBUTION_SUMMARY;
                if (isCompared(name) && (one.getStatistic() == Statistic.COUNT || isSum)) {
                    counts.add(name + labels + (isSum ? " sum " : " ") + one.getValue());
                }
            }
        }
        return counts;
    }

    private static Set<String> counts(Catalog catalog) {
        Set<String> counts = new TreeSet<>();
        for (Family family : catalog.read()) {
            for (Family.Point point : family.points()) {
                String series = family.name() + new TreeMap<>(point.labels());
                if (isCompared(family.name()) && family.kind() == Kind.COUNTER) {
                    counts.add(series + " " + ((Family.Value) point).value());
                } else if (isCompared(family.name()) && point instanceof Family.Histogram spread) {
                    counts.add(series + " " + (double) spread.distribution().count());
                    if (family.kind() == Kind.AMOUNTS) {
                        counts.add(series + " sum " + spread.distribution().sum());
                    }
                }
            }
        }
        return counts;
    }

    private static String lines(Set<String> names) {
        return String.join("\n", names);
    }

    private static Predicate<Map<String, String>> all() {
        return labels -> true;
    }

    private static Predicate<Map<String, String>> where(String... wanted) {
        Map<String, String> all = new TreeMap<>();
        for (int n = 0; n < wanted.length; n += 2) {
            all.put(wanted[n], wanted[n + 1]);
        }
        return labels -> labels.entrySet().containsAll(all.entrySet());
    }

    /** Of a distribution, its count. */
    private double total(String name, Predicate<Map<String, String>> labels) {
        return add(name, labels, false);
    }

    private double sum(String name, Predicate<Map<String, String>> labels) {
        return add(name, labels, true);
    }

    private double add(String name, Predicate<Map<String, String>> labels, boolean isSum) {
        double total = 0;
        for (Family family : catalog.read()) {
            for (Family.Point point : family.points()) {
                if (family.name().equals(name) && labels.test(point.labels())) {
                    total += point instanceof Family.Value value
                            ? value.value()
                            : isSum
                                    ? ((Family.Histogram) point).distribution().sum()
                                    : ((Family.Histogram) point).distribution().count();
                }
            }
        }
        return total;
    }

    private interface Question {
        boolean isSo();
    }

    private void until(String what, Question question) throws InterruptedException {
        long endNs = System.nanoTime() + 10_000_000_000L;
        while (!question.isSo()) {
            if (System.nanoTime() - endNs > 0) {
                throw new AssertionError("not within 10 s: " + what + "\n" + catalog.read());
            }
            Thread.sleep(2);
        }
    }
}
