package dev.parallax.springboot;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.parallax.httpclient5.HttpClientMetrics;
import dev.parallax.httpclient5.ServerMetrics;
import dev.parallax.recorder.Durations;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import io.micrometer.observation.ObservationRegistry;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.hc.client5.http.observation.HttpClientObservationSupport;
import org.apache.hc.client5.http.observation.ObservingOptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.http.client.HttpComponentsClientHttpRequestFactoryBuilder;
import org.springframework.boot.http.client.autoconfigure.ClientHttpRequestFactoryBuilderCustomizer;
import org.springframework.boot.http.client.autoconfigure.reactive.ClientHttpConnectorBuilderCustomizer;
import org.springframework.boot.http.client.reactive.HttpComponentsClientHttpConnectorBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/**
 * A service with a pool of two connections, four concurrent callers, a slow server. If this fails, the wait for a
 * connection is reported as the server's time, in the very place in which users look for it. The server takes 200 ms
 * here and 2 s with {@code -Dparallax.trap.ms=2000}, which also prints what is measured. It holds two requests until
 * two more wait for a connection, so each wait and each request must be between timestamps of the test, however busy
 * the host is.
 */
class PoolTrapTest {
    private static final int DELAY_MS = Integer.getInteger("parallax.trap.ms", 200);
    private static final int TRIALS = 3;

    /** The value at a rank is the upper bound of its bucket. */
    private static final double BUCKET = 1.01;

    private static final int CALLERS = 4;
    private static final int CONNECTIONS = 2;

    private final HttpClient callers = HttpClient.newHttpClient();

    /** How an application sets the size of its pools. */
    @Configuration(proxyBeanMethods = false)
    static class PoolsOfTwo {
        @Bean
        ClientHttpRequestFactoryBuilderCustomizer<HttpComponentsClientHttpRequestFactoryBuilder> poolOfTwo() {
            return builder -> builder.withConnectionManagerCustomizer(
                    pool -> pool.setMaxConnTotal(CONNECTIONS).setMaxConnPerRoute(CONNECTIONS));
        }

        @Bean
        ClientHttpConnectorBuilderCustomizer<HttpComponentsClientHttpConnectorBuilder> asyncPoolOfTwo() {
            return builder -> builder.withConnectionManagerCustomizer(
                    pool -> pool.setMaxConnTotal(CONNECTIONS).setMaxConnPerRoute(CONNECTIONS));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"RestClient", "RestTemplate", "WebClient"})
    void theWaitForAConnectionIsDistinguishedFromTheRequest(String by) throws Exception {
        try (Upstream upstream = new Upstream();
                ConfigurableApplicationContext service = Service.start(PoolsOfTwo.class)) {
            check(service, upstream, by);
            show(by, "Spring's http.client.requests", spring(service));
            assertTrue(maxMs(spring(service)) > 1.8 * DELAY_MS, "Spring's own: " + maxMs(spring(service)) + " ms");
        }
    }

    /** HttpClient's own observation, installed by the application's customizer, continues unchanged. */
    @Test
    void nextToHttpClientsOwnObservation() throws Exception {
        try (Upstream upstream = new Upstream();
                ConfigurableApplicationContext service = Service.start(Observed.class)) {
            check(service, upstream, "RestClient");
            Timer theirs = service.getBean(MeterRegistry.class).get("http.client.request").timer();
            show("RestClient", "httpclient5-observation's http.client.request", theirs);
            assertEquals(TRIALS * CALLERS, theirs.count());
            assertTrue(maxMs(theirs) > 1.8 * DELAY_MS, "theirs: " + maxMs(theirs) + " ms");
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Observed extends PoolsOfTwo {
        @Bean
        ClientHttpRequestFactoryBuilderCustomizer<HttpComponentsClientHttpRequestFactoryBuilder> observed(
                MeterRegistry meters) {
            return builder -> builder.withHttpClientCustomizer(
                    client -> HttpClientObservationSupport.enable(
                            client, ObservationRegistry.create(), meters, ObservingOptions.DEFAULT));
        }
    }

    /** Twice as many callers as connections: half of them wait for one request of another. */
    private void check(ConfigurableApplicationContext service, Upstream upstream, String by) throws Exception {
        URI call = URI.create("http://localhost:" + Service.port(service) + "/" + by + "?url=" + upstream.url("held=1"));
        HttpClientMetrics metrics = service.getBean(HttpClientMetrics.class);
        for (int trial = 0; trial < TRIALS; trial++) {
            checkOnce(call, upstream, metrics, by);
        }
        ServerMetrics server = Seen.only(metrics);
        assertEquals(CONNECTIONS, server.connects().total().count());
        assertEquals("{GET 200=" + TRIALS * CALLERS + "}", Seen.rows(server.requests()));
        assertEquals(TRIALS * CALLERS, server.waits().total().count());
        assertEquals("{0=" + TRIALS * CALLERS + "}", Seen.rows(server.calls()));
        assertEquals("{}", Seen.rows(server.failures()));
        Seen.until("all is given back", () -> server.pending() == 0 && server.active() == 0);
    }

    private void checkOnce(URI call, Upstream upstream, HttpClientMetrics metrics, String by) throws Exception {
        Durations waitsBefore = waits(metrics);
        Durations requestsBefore = requests(metrics);
        int heldBefore = upstream.held();
        ExecutorService threads = Executors.newFixedThreadPool(CALLERS);
        try {
            long begunNs = System.nanoTime();
            List<Future<Integer>> all = new ArrayList<>();
            for (int i = 0; i < CALLERS; i++) {
                all.add(threads.submit(() -> callers.send(
                                HttpRequest.newBuilder(call).build(), HttpResponse.BodyHandlers.ofString())
                        .statusCode()));
            }
            Seen.until("half are held and half wait", () -> upstream.held() == heldBefore + CONNECTIONS
                    && Seen.only(metrics).pending() == CALLERS - CONNECTIONS);
            long firstHeldNs = System.nanoTime();
            Thread.sleep(DELAY_MS);
            long firstReleasedNs = System.nanoTime();
            upstream.release(CONNECTIONS);
            Seen.until("the others are held", () -> upstream.held() == heldBefore + CALLERS);
            long lastHeldNs = System.nanoTime();
            Thread.sleep(DELAY_MS);
            long lastReleasedNs = System.nanoTime();
            upstream.release(CALLERS - CONNECTIONS);
            for (Future<Integer> one : all) {
                assertEquals(200, one.get());
            }
            long endedNs = System.nanoTime();

            Durations waits = waits(metrics).since(waitsBefore);
            Durations requests = requests(metrics).since(requestsBefore);
            show(by, "wait", waits);
            show(by, "service", requests);
            long heldNs = Math.min(firstReleasedNs - firstHeldNs, lastReleasedNs - lastHeldNs);
            checkHalf(waits, 1, 0, firstHeldNs - begunNs);
            checkHalf(waits, 1 + CONNECTIONS, firstReleasedNs - firstHeldNs, lastHeldNs - begunNs);
            long firstMostNs = lastHeldNs - begunNs;
            long lastMostNs = endedNs - firstReleasedNs;
            checkHalf(requests, 1, heldNs, Math.min(firstMostNs, lastMostNs));
            checkHalf(requests, 1 + CONNECTIONS, heldNs, Math.max(firstMostNs, lastMostNs));
        } finally {
            threads.shutdown();
        }
    }

    private static void checkHalf(Durations durations, int fromRank, long leastNs, long mostNs) {
        assertEquals(CALLERS, durations.count());
        for (int rank = fromRank; rank < fromRank + CALLERS / 2; rank++) {
            double ns = durations.atRank(rank).orElseThrow();
            assertTrue(ns >= leastNs && ns <= mostNs * BUCKET, rank + ": " + leastNs + " <= " + ns + " <= " + mostNs);
        }
    }

    private static Durations waits(HttpClientMetrics metrics) {
        return metrics.servers().isEmpty() ? Durations.NONE : Seen.only(metrics).waits().total();
    }

    private static Durations requests(HttpClientMetrics metrics) {
        return metrics.servers().isEmpty() ? Durations.NONE : Seen.all(Seen.only(metrics).requests());
    }

    private static Timer spring(ConfigurableApplicationContext service) {
        return service.getBean(MeterRegistry.class).get("http.client.requests").timer();
    }

    private static double maxMs(Timer timer) {
        return timer.max(TimeUnit.MILLISECONDS);
    }

    private static void show(String by, String what, Durations durations) {
        if (System.getProperty("parallax.trap.ms") != null) {
            List<String> all = new ArrayList<>();
            for (int rank = 1; rank <= durations.count(); rank++) {
                all.add(String.format("%.1f", Seen.ms(durations, rank)));
            }
            System.out.println(by + ", " + what + ", ms: " + String.join(" ", all));
        }
    }

    private static void show(String by, String what, Timer timer) {
        if (System.getProperty("parallax.trap.ms") != null) {
            System.out.printf(
                    "%s, %s: count %d, mean %.1f ms, max %.1f ms%n",
                    by, what, timer.count(), timer.mean(TimeUnit.MILLISECONDS), maxMs(timer));
        }
    }
}
