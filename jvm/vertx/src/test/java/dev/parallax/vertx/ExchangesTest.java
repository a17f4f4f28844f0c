package dev.parallax.vertx;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;

import com.sun.management.ThreadMXBean;
import dev.parallax.recorder.Catalog;
import dev.parallax.recorder.Family;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CyclicBarrier;
import org.junit.jupiter.api.Test;

class ExchangesTest {
    private final Catalog catalog = new Catalog();

    /** If this fails, what measures a server works for the garbage collector. */
    @Test
    void anExchangeAllocatesNothing() {
        Exchanges server = Exchanges.ofServer(new SeriesOptions(catalog, EnumSet.allOf(Label.class)), Map.of(Label.LOCAL, "here"));
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        for (int n = 0; n < 20_000; n++) {
            pipelined(server);
        }
        long least = Long.MAX_VALUE;
        // A collection or a compiled method's deoptimisation may be among them; what the code allocates is in all.
        for (int trial = 0; trial < 20; trial++) {
            long before = threads.getCurrentThreadAllocatedBytes();
            for (int n = 0; n < 1_000; n++) {
                pipelined(server);
            }
            least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
        }
        // A thread's first record of a longer time takes a kilobyte, and no trial of twenty has to have one.
        assertEquals(0, least);
        assertEquals(80_000, total("vertx.http.server.requests"));
    }

    private static void pipelined(Exchanges server) {
        Exchange one = server.begin("there", "/one", "GET", "HTTP/1.1");
        Exchange other = server.begin("there", "/other", "GET", "HTTP/1.1");
        one.addRoute("/:name");
        server.requestEnd(one, 0);
        server.responseEnd(one, 200, 13);
        server.responseEnd(other, 404, 0);
        server.requestEnd(other, 5_000);
    }

    /** Each end is reported by its own thread: exactly one of them returns the exchange. */
    @Test
    void bothEndsMayBeReportedAtOnce() throws Exception {
        Exchanges server = Exchanges.ofServer(new SeriesOptions(catalog, Set.of(Label.METHOD)), Map.of());
        int rounds = 20_000;
        CyclicBarrier barrier = new CyclicBarrier(2);
        Exchange[] now = new Exchange[1];
        Thread worker = new Thread(() -> {
            try {
                for (int n = 0; n < rounds; n++) {
                    barrier.await();
                    server.responseEnd(now[0], 200, 1);
                    barrier.await();
                }
            } catch (Exception e) {
                throw new AssertionError(e);
            }
        });
        worker.start();
        for (int n = 0; n < rounds; n++) {
            Exchange held = server.begin(null, "/", "GET", null);
            now[0] = held;
            barrier.await();
            server.requestEnd(held, 1);
            barrier.await();
        }
        worker.join();
        assertEquals(rounds, total("vertx.http.server.requests"));
        assertEquals(rounds, total("vertx.http.server.request.bytes"));
        assertEquals(0, total("vertx.http.server.active.requests"));
        Exchange first = server.begin(null, "/", "GET", null);
        assertNotSame(first, server.begin(null, "/", "GET", null));
    }

    /** One end here and then the other elsewhere, the other way around, and both elsewhere. */
    @Test
    void eachEndMayBeReportedElsewhere() throws Exception {
        Exchanges server = Exchanges.ofServer(new SeriesOptions(catalog, Set.of(Label.METHOD)), Map.of());
        Exchange one = server.begin(null, "/", "GET", null);
        Exchange other = server.begin(null, "/", "GET", null);
        Exchange both = server.begin(null, "/", "GET", null);
        Exchange none = server.begin(null, "/", "GET", null);
        server.requestEnd(one, 1);
        server.requestEnd(none, 1);
        assertEquals(4, total("vertx.http.server.active.requests"));
        Thread elsewhere = new Thread(() -> {
            server.responseEnd(one, 200, 1);
            server.responseEnd(other, 200, 1);
            server.requestEnd(both, 1);
            server.responseEnd(both, 200, 1);
            server.responseEnd(none, 200, 1);
        });
        elsewhere.start();
        elsewhere.join();
        assertEquals(1, total("vertx.http.server.active.requests"));
        server.requestEnd(other, 1);
        assertEquals(0, total("vertx.http.server.active.requests"));
        assertEquals(4, total("vertx.http.server.request.bytes"));
        assertEquals(4, total("vertx.http.server.requests"));
    }

    @Test
    void anExchangeThatWasResetIsNotUsedAgain() {
        Exchanges server = Exchanges.ofServer(new SeriesOptions(catalog, Set.of(Label.METHOD)), Map.of());
        Exchange reset = server.begin(null, "/", "GET", null);
        server.requestEnd(reset, 0);
        server.reset(reset);
        server.responseEnd(reset, 200, 0);
        server.reset(reset);
        assertEquals(0, total("vertx.http.server.active.requests"));
        assertEquals(2, total("vertx.http.server.request.resets"));
        Exchange next = server.begin(null, "/", "GET", null);
        assertNotSame(reset, next);
        server.requestEnd(next, 0);
        server.responseEnd(next, 200, 0);
        assertSame(next, server.begin(null, "/", "GET", null));
        Exchange prepared = server.prepare();
        server.reset(prepared);
        server.detach(server.push(null, "/", "GET", null));
        assertEquals(1, total("vertx.http.server.active.requests"));
    }

    /** The exchanges of a thread are used by all, with other labels. */
    @Test
    void severalOnOneThreadDoNotMix() {
        SeriesOptions options = new SeriesOptions(catalog, Set.of(Label.METHOD, Label.CODE, Label.ROUTE, Label.REMOTE, Label.SERVER_NAME));
        Exchanges first = Exchanges.ofServer(options, Map.of(Label.SERVER_NAME, "first"));
        Exchanges second = Exchanges.ofServer(options, Map.of(Label.SERVER_NAME, "second"));
        Exchanges client = Exchanges.ofClient(options, Map.of(Label.REMOTE, "far"));
        for (int n = 0; n < 60; n++) {
            Exchange of = first.begin(n % 2 == 0 ? "a" : "b", "/", n % 3 == 0 ? "GET" : "PUT", null);
            of.addRoute(n % 5 == 0 ? null : "/r");
            first.requestEnd(of, 0);
            first.responseEnd(of, n % 4 == 0 ? 404 : 200, 0);
            if (n % 2 == 0) {
                Exchange other = second.begin("a", "/", "GET", null);
                second.responseEnd(other, 200, 0);
                second.requestEnd(other, 0);
            }
            Exchange sent = client.begin(null, "/", "GET", null);
            client.requestEnd(sent, 0);
            client.responseEnd(sent, n % 6 == 0 ? 500 : 200, 0);
        }
        Map<String, Integer> expected = new TreeMap<>();
        for (int n = 0; n < 60; n++) {
            expected.merge(
                    "{code=" + (n % 4 == 0 ? 404 : 200) + ", method=" + (n % 3 == 0 ? "GET" : "PUT") + ", remote="
                            + (n % 2 == 0 ? "a" : "b") + ", route=" + (n % 5 == 0 ? "" : "/r") + ", server_name=first}",
                    1,
                    Integer::sum);
        }
        expected.put("{code=200, method=GET, remote=a, route=, server_name=second}", 30);
        Map<String, Double> counts = new TreeMap<>();
        expected.forEach((labels, count) -> counts.put(labels, (double) count));
        assertEquals(counts.toString(), counts("vertx.http.server.requests"));
        assertEquals(
                "{{code=200, method=GET, remote=far}=50.0, {code=500, method=GET, remote=far}=10.0}",
                counts("vertx.http.client.responses"));
    }

    @Test
    void rulesChangeWhatIsShown() {
        List<Match> rules = List.of(
                Match.regex("http.server", Label.PATH, "/user/.*", "/user/:id"),
                Match.exactly("http.server", Label.METHOD, "GET", null),
                Match.exactly("http.client", Label.PATH, "/", "root"));
        SeriesOptions options = new SeriesOptions(catalog, Set.of(Label.PATH, Label.METHOD), Set.of(), rules, 1000);
        Exchanges server = Exchanges.ofServer(options, Map.of());
        for (String uri : new String[] {"/user/1?x=/y", "http://host/user/2", "/user/3", "/"}) {
            for (String method : new String[] {"GET", "POST"}) {
                Exchange exchange = server.begin(null, uri, method, null);
                server.responseEnd(exchange, 200, 0);
            }
        }
        assertEquals("{{method=GET, path=/user/:id}=3.0, {method=GET, path=/}=1.0}", counts("vertx.http.server.requests"));
    }

    @Test
    void whatIsBeyondTheLimitIsInOneRow() {
        SeriesOptions options = new SeriesOptions(catalog, Set.of(Label.PATH), Set.of(), List.of(), 2);
        Exchanges server = Exchanges.ofServer(options, Map.of());
        for (String uri : new String[] {"/a", "/b", "/c", "/d", "/a"}) {
            server.responseEnd(server.begin(null, uri, "GET", null), 200, 0);
        }
        assertEquals("{{path=/a}=2.0, {path=/b}=1.0, {path=_OTHER}=2.0}", counts("vertx.http.server.requests"));
    }

    private String counts(String name) {
        TreeMap<String, Double> counts = new TreeMap<>();
        for (Family.Point point : family(name).points()) {
            counts.put(new TreeMap<>(point.labels()).toString(), ((Family.Value) point).value());
        }
        return counts.toString();
    }

    private double total(String name) {
        double total = 0;
        for (Family.Point point : family(name).points()) {
            total += point instanceof Family.Value value ? value.value() : ((Family.Histogram) point).distribution().count();
        }
        return total;
    }

    private Family family(String name) {
        List<String> names = new ArrayList<>();
        for (Family family : catalog.read()) {
            if (family.name().equals(name)) {
                return family;
            }
            names.add(family.name());
        }
        throw new AssertionError("no " + name + " among " + new TreeSet<>(names));
    }
}
