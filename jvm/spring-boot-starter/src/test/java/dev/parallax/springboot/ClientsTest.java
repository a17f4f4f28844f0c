package dev.parallax.springboot;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.parallax.httpclient5.HttpClientMetrics;
import dev.parallax.httpclient5.ServerMetrics;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hc.client5.http.impl.async.CloseableHttpAsyncClient;
import org.apache.hc.client5.http.impl.async.HttpAsyncClients;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.HttpClientBuilder;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.http.client.ClientHttpRequestFactoryBuilder;
import org.springframework.boot.http.client.HttpComponentsClientHttpRequestFactoryBuilder;
import org.springframework.boot.http.client.autoconfigure.ClientHttpRequestFactoryBuilderCustomizer;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.io.buffer.DataBuffer;
import org.springframework.core.io.buffer.DataBufferUtils;
import org.springframework.http.client.HttpComponentsClientHttpRequestFactory;
import org.springframework.http.client.reactive.HttpComponentsClientHttpConnector;
import org.springframework.web.client.ResourceAccessException;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestTemplate;
import org.springframework.web.reactive.function.client.WebClient;
import org.springframework.web.reactive.function.client.WebClientRequestException;
import reactor.core.Disposable;

/** Which clients are measured, and what is reported of calls that go wrong. */
class ClientsTest {
    @Test
    void refusalsAreReported() throws Exception {
        int port;
        try (ServerSocket nobody = new ServerSocket(0, 1, InetAddress.getByName("localhost"))) {
            port = nobody.getLocalPort();
        }
        String url = "http://localhost:" + port + "/";
        try (ConfigurableApplicationContext service = Service.start()) {
            RestClient.RequestHeadersSpec<?> call = service.getBean(RestClient.class).get().uri(url);
            assertThrows(ResourceAccessException.class, () -> call.retrieve().toBodilessEntity());
            RestTemplate template = service.getBean(RestTemplate.class);
            assertThrows(ResourceAccessException.class, () -> template.getForObject(url, String.class));
            WebClient reactive = service.getBean(WebClient.class);
            assertThrows(WebClientRequestException.class, () -> reactive.get().uri(url).retrieve().toBodilessEntity().block());
            ServerMetrics server = Seen.only(service.getBean(HttpClientMetrics.class));
            Seen.until("all failed", () -> Seen.rows(server.failures()).equals("{connect connect_refused=3}"));
            assertEquals(0, server.waits().total().since(server.waits().total()).count());
            Seen.until("all is given back", () -> server.pending() == 0 && server.active() == 0);
        }
    }

    @Test
    void timeoutsAndCancellationsAreReported() throws Exception {
        try (Upstream upstream = new Upstream();
                ConfigurableApplicationContext service = Service.start("spring.http.clients.read-timeout=150ms")) {
            String url = upstream.url("head=2000");
            ServerMetrics server = null;
            RestClient.RequestHeadersSpec<?> call = service.getBean(RestClient.class).get().uri(url);
            assertThrows(ResourceAccessException.class, () -> call.retrieve().toBodilessEntity());
            server = Seen.only(service.getBean(HttpClientMetrics.class));
            assertEquals("{wait request_timeout=1}", Seen.rows(server.failures()));
            assertTrue(Seen.ms(Seen.all(server.failures()), 1) >= 150);
            WebClient reactive = service.getBean(WebClient.class);
            ServerMetrics seen = server;
            Disposable unwanted = reactive.get().uri(url).retrieve().toBodilessEntity().subscribe();
            Seen.until("it has a connection", () -> seen.active() == 1);
            unwanted.dispose();
            Seen.until("the second failed", () -> Seen.all(seen.failures()).count() == 2);
            // Spring's connector does not report it to HttpClient: the exchange continued, held its connection, and
            // timed out.
            assertEquals("{wait request_timeout=2}", Seen.rows(server.failures()));
            assertEquals(0, Seen.all(server.requests()).count());
            Seen.until("all is given back", () -> seen.pending() == 0 && seen.active() == 0);
        }
    }

    /**
     * Within the body, where a cancellation takes effect: at least one of five tries, because the connector may lose
     * one that comes between two pieces. Then all of the body is read, and counted as a successful request.
     */
    @Test
    void aBodyThatNobodyWantsAnyMoreIsReported() throws Exception {
        try (Upstream upstream = new Upstream();
                ConfigurableApplicationContext service = Service.start()) {
            int tries = 0;
            long cancelled = 0;
            while (cancelled == 0) {
                assertTrue(++tries <= 5, "a cancellation got through to nobody");
                int first = firstPiece(service, upstream.url("size=1000000,times=200"));
                assertTrue(first > 0 && first < 1_000_000, first + " bytes");
                ServerMetrics server = Seen.only(service.getBean(HttpClientMetrics.class));
                Seen.until("all is given back", () -> server.pending() == 0 && server.active() == 0);
                cancelled = server.failedCalls().total().count();
                assertEquals(tries - cancelled, Seen.all(server.requests()).count(), Seen.rows(server.failures()));
            }
            ServerMetrics server = Seen.only(service.getBean(HttpClientMetrics.class));
            // HttpClient may repeat the call before it learns that nobody waits for it: that attempt is cancelled, too.
            String failures = Seen.rows(server.failures());
            assertTrue(failures.matches("\\{((wait|connect) cancelled=1, )?receive cancelled=1(, wait cancelled=1)?}"), failures);
            assertEquals(1, cancelled);
        }
    }

    private static int firstPiece(ConfigurableApplicationContext service, String url) {
        return service.getBean(WebClient.class)
                .get()
                .uri(url)
                .retrieve()
                .bodyToFlux(DataBuffer.class)
                .map(buffer -> {
                    int bytes = buffer.readableByteCount();
                    DataBufferUtils.release(buffer);
                    return bytes;
                })
                .blockFirst();
    }

    /** If this fails, a client that reads slowly is reported as a server that is fast. */
    @Test
    void serviceEndsWithTheBody() throws Exception {
        int sleepMs = 120;
        try (Upstream upstream = new Upstream();
                ConfigurableApplicationContext service = Service.start()) {
            long bytes = service.getBean(RestClient.class).get().uri(upstream.url("size=100000")).exchange((request, response) -> {
                InputStream body = response.getBody();
                long first = body.readNBytes(100).length;
                try {
                    Thread.sleep(sleepMs);
                } catch (InterruptedException e) {
                    throw new AssertionError(e);
                }
                return first + body.readAllBytes().length;
            });
            assertEquals(100_000, bytes);
            ServerMetrics server = Seen.only(service.getBean(HttpClientMetrics.class));
            double wholeMs = Seen.ms(Seen.all(server.requests()), 1);
            double headMs = Seen.ms(server.responseHeads().total(), 1);
            // Each is known to one part in 128, upwards.
            assertTrue(wholeMs - headMs >= sleepMs - headMs / 100, headMs + " ms, then " + wholeMs + " ms");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"RestClient", "WebClient"})
    void handshakesAreReportedFromConnects(String by) throws Exception {
        try (Certificate certificate = new Certificate();
                Upstream upstream = certificate.upstream();
                ConfigurableApplicationContext service = Service.start(
                        "spring.http.clients.ssl.bundle=planted",
                        "spring.ssl.bundle.jks.planted.truststore.location=file:" + certificate.path(),
                        "spring.ssl.bundle.jks.planted.truststore.password=planted")) {
            String body = by.equals("RestClient")
                    ? service.getBean(RestClient.class).get().uri(upstream.url("")).retrieve().body(String.class)
                    : service.getBean(WebClient.class).get().uri(upstream.url("")).retrieve().bodyToMono(String.class).block();
            assertEquals("xx", body);
            ServerMetrics server = Seen.only(service.getBean(HttpClientMetrics.class));
            assertEquals(1, server.connects().total().count());
            assertEquals(1, server.handshakes().total().count());
        }
    }

    /** The application's own way, with all that can be done by hand, and what Spring Boot customizes. */
    @Test
    void whatTheApplicationConfiguredGoesOnAndCountsOnce() throws Exception {
        try (Upstream upstream = new Upstream();
                ConfigurableApplicationContext service = Service.start(ByHand.class)) {
            HttpClientMetrics metrics = service.getBean(HttpClientMetrics.class);
            assertSame(ByHand.METRICS, metrics);
            assertEquals("xx", service.getBean(RestClient.class).get().uri(upstream.url("")).retrieve().body(String.class));
            assertTrue(ByHand.CUSTOMIZED.get() > 0);
            assertEquals(1, ByHand.INTERCEPTED.get());
            ServerMetrics server = Seen.only(metrics);
            assertEquals("{GET 200=1}", Seen.rows(server.requests()));
            assertEquals("{0=1}", Seen.rows(server.calls()));
            assertEquals(1, server.waits().total().count());
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class ByHand {
        static final HttpClientMetrics METRICS = new HttpClientMetrics();
        static final AtomicInteger CUSTOMIZED = new AtomicInteger();
        static final AtomicInteger INTERCEPTED = new AtomicInteger();

        @Bean
        HttpClientMetrics metrics() {
            return METRICS;
        }

        /** In place of Spring Boot's. */
        @Bean
        ClientHttpRequestFactoryBuilder<?> factories() {
            return ClientHttpRequestFactoryBuilder.httpComponents()
                    .withHttpClientCustomizer(METRICS::install)
                    .withHttpClientCustomizer(client -> client.addExecInterceptorFirst("mine", (request, scope, chain) -> {
                        INTERCEPTED.incrementAndGet();
                        return chain.proceed(request, scope);
                    }))
                    .withDefaultRequestConfigCustomizer(request -> CUSTOMIZED.incrementAndGet());
        }
    }

    @Test
    void clientsAndBuildersThatAreBeansAreMeasured() throws Exception {
        try (Upstream upstream = new Upstream();
                ConfigurableApplicationContext service = Service.start(Beans.class)) {
            HttpClientMetrics metrics = service.getBean(HttpClientMetrics.class);
            for (String name : new String[] {"ofABuilder", "ofAClient", "ofNoBean"}) {
                assertEquals("xx", service.getBean(name, RestTemplate.class).getForObject(upstream.url(""), String.class));
            }
            WebClient reactive = service.getBean("reactive", WebClient.class);
            assertEquals("xx", reactive.get().uri(upstream.url("")).retrieve().bodyToMono(String.class).block());
            Seen.until("all four", () -> Seen.rows(Seen.only(metrics).requests()).equals("{GET 200=4}"));
            assertEquals(4, Seen.only(metrics).connects().total().count());
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Beans {
        @Bean
        HttpClientBuilder clientBuilder() {
            return HttpClients.custom();
        }

        @Bean
        RestTemplate ofABuilder(HttpClientBuilder builder) {
            return new RestTemplate(new HttpComponentsClientHttpRequestFactory(builder.build()));
        }

        @Bean
        CloseableHttpClient client() {
            return HttpClients.createDefault();
        }

        @Bean
        RestTemplate ofAClient(CloseableHttpClient client) {
            return new RestTemplate(new HttpComponentsClientHttpRequestFactory(client));
        }

        @Bean
        RestTemplate ofNoBean() {
            RestTemplate template = new RestTemplate(new HttpComponentsClientHttpRequestFactory(HttpClients.createSystem()));
            template.getInterceptors().add((request, body, execution) -> execution.execute(request, body));
            return template;
        }

        @Bean
        CloseableHttpAsyncClient asyncClient() {
            return HttpAsyncClients.createDefault();
        }

        @Bean
        WebClient reactive(CloseableHttpAsyncClient client) {
            return WebClient.builder().clientConnector(new HttpComponentsClientHttpConnector(client)).build();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"parallax.enabled=false", "parallax.http-client.enabled=false"})
    void aPropertySwitchesItOff(String property) throws Exception {
        try (Upstream upstream = new Upstream();
                ConfigurableApplicationContext service = Service.start(property)) {
            assertEquals(0, service.getBeanNamesForType(HttpClientMetrics.class).length);
            assertEquals("xx", service.getBean(RestClient.class).get().uri(upstream.url("")).retrieve().body(String.class));
        }
    }

    /** If this fails, an error of ours keeps an application from starting. */
    @Test
    void whatFailsHereDoesNotFailTheApplication() throws Exception {
        try (Upstream upstream = new Upstream();
                ConfigurableApplicationContext service = Service.start(Broken.class)) {
            assertEquals("xx", service.getBean(RestClient.class).get().uri(upstream.url("")).retrieve().body(String.class));
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Broken {
        @Bean
        @org.springframework.context.annotation.Lazy
        HttpClientMetrics broken() {
            throw new IllegalStateException("planted");
        }

        @Bean
        ClientHttpRequestFactoryBuilderCustomizer<HttpComponentsClientHttpRequestFactoryBuilder> none() {
            return builder -> builder;
        }
    }
}
