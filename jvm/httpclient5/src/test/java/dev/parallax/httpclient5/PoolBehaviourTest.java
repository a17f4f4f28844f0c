package dev.parallax.httpclient5;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import org.apache.hc.client5.http.HttpRoute;
import org.apache.hc.client5.http.classic.methods.HttpGet;
import org.apache.hc.client5.http.config.ConnectionConfig;
import org.apache.hc.client5.http.config.RequestConfig;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.HttpClientBuilder;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.apache.hc.client5.http.impl.io.BasicHttpClientConnectionManager;
import org.apache.hc.client5.http.impl.io.PoolingHttpClientConnectionManager;
import org.apache.hc.core5.http.ConnectionRequestTimeoutException;
import org.apache.hc.core5.http.HttpHost;
import org.apache.hc.core5.http.io.entity.EntityUtils;
import org.apache.hc.core5.util.TimeValue;
import org.apache.hc.core5.util.Timeout;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout.ThreadMode;

/** What HttpClient documents of its pool, with the client measured. */
@org.junit.jupiter.api.Timeout(value = 60, threadMode = ThreadMode.SEPARATE_THREAD)
class PoolBehaviourTest {
    private final HttpClientMetrics metrics = new HttpClientMetrics();
    private final PoolingHttpClientConnectionManager manager = new PoolingHttpClientConnectionManager();
    private Upstream upstream;
    private Upstream elsewhere;

    @BeforeEach
    void open() throws IOException {
        upstream = new Upstream();
        elsewhere = new Upstream();
    }

    @AfterEach
    void everythingIsBack() {
        assertEquals(0, manager.getTotalStats().getLeased());
        assertTrue(Seen.isAtRest(metrics));
        upstream.close();
        elsewhere.close();
    }

    @Test
    void aConnectionIsKeptForTheNextRequest() throws IOException {
        try (CloseableHttpClient client = client()) {
            get(client, upstream);
            get(client, upstream);
        }
        assertEquals(1, upstream.connections());
        assertEquals(1, server(upstream).connects().total().count());
        assertEquals(2, server(upstream).waits().total().count());
    }

    @Test
    void aRouteThatIsFullRefusesInTimeAndAnotherDoesNot() throws IOException {
        manager.setDefaultMaxPerRoute(1);
        try (CloseableHttpClient client = client()) {
            client.execute(new HttpGet(upstream.url("")), taken -> {
                assertThrows(ConnectionRequestTimeoutException.class, () -> get(client, upstream));
                get(client, elsewhere);
                EntityUtils.consume(taken.getEntity());
                return null;
            });
            get(client, upstream);
        }
        assertEquals("{pool_wait checkout_timeout=1}", Seen.rows(server(upstream).failures()));
        assertEquals("{}", Seen.rows(server(elsewhere).failures()));
    }

    @Test
    void aRouteMayHaveALimitOfItsOwn() throws IOException {
        manager.setDefaultMaxPerRoute(1);
        manager.setMaxPerRoute(new HttpRoute(new HttpHost("http", "localhost", upstream.port())), 2);
        try (CloseableHttpClient client = client()) {
            client.execute(new HttpGet(upstream.url("")), taken -> {
                get(client, upstream);
                assertThrows(ConnectionRequestTimeoutException.class, () -> client.execute(
                        new HttpGet(elsewhere.url("")), alsoTaken -> get(client, elsewhere)));
                return null;
            });
        }
        assertEquals(2, upstream.connections());
    }

    /** A full pool gives up a connection of another route for one that is wanted. */
    @Test
    void aFullPoolClosesWhatIsIdleElsewhere() throws IOException {
        manager.setMaxTotal(1);
        try (CloseableHttpClient client = client()) {
            get(client, upstream);
            get(client, elsewhere);
            get(client, upstream);
        }
        assertEquals(2, upstream.connections());
        assertEquals(2, server(upstream).connects().total().count());
    }

    @Test
    void idleConnectionsAreEvicted() throws Exception {
        HttpClientBuilder builder = HttpClients.custom()
                .setConnectionManager(manager)
                .evictExpiredConnections()
                .evictIdleConnections(TimeValue.ofMilliseconds(1));
        try (CloseableHttpClient client = metrics.install(builder).build()) {
            get(client, upstream);
            Seen.until("it is evicted", () -> manager.getTotalStats().getAvailable() == 0);
            assertEquals(0, metrics.pools().get(0).getAvailable());
            get(client, upstream);
        }
        assertEquals(2, server(upstream).connects().total().count());
    }

    @Test
    void aConnectionThatOutlivedItsTimeIsReplaced() throws Exception {
        manager.setDefaultConnectionConfig(
                ConnectionConfig.custom().setTimeToLive(TimeValue.ofMilliseconds(1)).build());
        try (CloseableHttpClient client = client()) {
            get(client, upstream);
            Thread.sleep(10);
            get(client, upstream);
        }
        assertEquals(2, server(upstream).connects().total().count());
        assertEquals("{}", Seen.rows(server(upstream).failures()));
    }

    @Test
    void aConnectionThatTheServerClosedIsNoticedBeforeItIsUsed() throws Exception {
        manager.setDefaultConnectionConfig(ConnectionConfig.custom()
                .setValidateAfterInactivity(TimeValue.ZERO_MILLISECONDS)
                .build());
        String answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        try (Scripted closing = new Scripted(answer, Scripted.Then.CLOSE);
                CloseableHttpClient client = client()) {
            for (int i = 0; i < 2; i++) {
                client.execute(new HttpGet(closing.url()), response -> EntityUtils.toByteArray(response.getEntity()));
                Thread.sleep(50);
            }
        }
        assertEquals("{GET 200=2}", Seen.rows(Seen.only(metrics).requests()));
        assertEquals("{}", Seen.rows(Seen.only(metrics).failures()));
        assertEquals(2, Seen.only(metrics).connects().total().count());
    }

    /** A manager of one connection, without a pool: a request while it is in use is refused immediately. */
    @Test
    void aManagerWithoutAPool() throws IOException {
        try (CloseableHttpClient client = metrics.install(
                        HttpClients.custom().setConnectionManager(new BasicHttpClientConnectionManager()))
                .build()) {
            get(client, upstream);
            get(client, upstream);
        }
        assertEquals(1, server(upstream).connects().total().count());
        assertEquals("{GET 200=2}", Seen.rows(server(upstream).requests()));
    }

    private CloseableHttpClient client() {
        return metrics.install(HttpClients.custom()
                        .setConnectionManager(manager)
                        .setDefaultRequestConfig(RequestConfig.custom()
                                .setConnectionRequestTimeout(Timeout.ofMilliseconds(100))
                                .build()))
                .build();
    }

    private ServerMetrics server(Upstream of) {
        return metrics.servers().stream()
                .filter(server -> server.port() == of.port())
                .findFirst()
                .orElseThrow();
    }

    private static byte[] get(CloseableHttpClient client, Upstream from) throws IOException {
        return client.execute(
                new HttpGet(from.url("size=10")), response -> EntityUtils.toByteArray(response.getEntity()));
    }
}
