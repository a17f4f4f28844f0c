package dev.parallax.httpclient5;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.concurrent.TimeUnit;
import org.apache.hc.client5.http.async.methods.SimpleRequestBuilder;
import org.apache.hc.client5.http.auth.AuthScope;
import org.apache.hc.client5.http.auth.CredentialsProvider;
import org.apache.hc.client5.http.auth.UsernamePasswordCredentials;
import org.apache.hc.client5.http.classic.methods.HttpGet;
import org.apache.hc.client5.http.impl.DefaultHttpRequestRetryStrategy;
import org.apache.hc.client5.http.impl.async.CloseableHttpAsyncClient;
import org.apache.hc.client5.http.impl.async.HttpAsyncClients;
import org.apache.hc.client5.http.impl.auth.BasicCredentialsProvider;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.apache.hc.core5.http.EntityDetails;
import org.apache.hc.core5.http.HttpHost;
import org.apache.hc.core5.http.HttpRequest;
import org.apache.hc.core5.http.HttpRequestInterceptor;
import org.apache.hc.core5.http.io.entity.EntityUtils;
import org.apache.hc.core5.http.protocol.HttpContext;
import org.apache.hc.core5.util.TimeValue;
import org.junit.jupiter.api.Test;

/** Retries, redirects and challenges are attempts of one call; with a classic client and with an asynchronous one. */
class AttemptTest {
    private static final TimeValue PAUSE = TimeValue.ofMilliseconds(200);

    private final HttpClientMetrics metrics = new HttpClientMetrics();
    private final HttpClientMetrics asyncMetrics = new HttpClientMetrics();
    private CredentialsProvider credentials = new BasicCredentialsProvider();

    /** The pause before the second try is of the call, and of no attempt. */
    @Test
    void aRetryIsAnAttemptOfItsOwn() throws Exception {
        try (Upstream upstream = new Upstream()) {
            get(upstream.url("fail=1,size=0"));
            check(metrics, "{GET 200=1, GET 503=1}", "{1=1}");
        }
        try (Upstream upstream = new Upstream()) {
            getAsync(upstream.url("fail=1,size=0"));
            check(asyncMetrics, "{GET 200=1, GET 503=1}", "{1=1}");
        }
        for (HttpClientMetrics all : new HttpClientMetrics[] {metrics, asyncMetrics}) {
            ServerMetrics server = Seen.only(all);
            double outsideNs = Seen.all(server.calls()).sumNs() - Seen.all(server.requests()).sumNs();
            assertTrue(outsideNs >= PAUSE.toNanoseconds() * 0.98, "of the call and of no attempt are " + outsideNs + " ns");
        }
    }

    /** A failure of a connection is one of an attempt; the call has its response. */
    @Test
    void aFailedAttemptIsOfACallThatWentWell() throws Exception {
        try (Upstream upstream = new Upstream();
                CloseableHttpClient client = metrics.install(HttpClients.custom()
                                .setRetryStrategy(new DefaultHttpRequestRetryStrategy(1, PAUSE))
                                .addRequestInterceptorLast(new FailsOnce()))
                        .build()) {
            client.execute(new HttpGet(upstream.url("")), response -> {
                EntityUtils.consume(response.getEntity());
                return null;
            });
        }
        ServerMetrics server = Seen.only(metrics);
        assertEquals("{GET 200=1}", Seen.rows(server.requests()));
        assertEquals("{1=1}", Seen.rows(server.calls()));
        assertEquals(1, Seen.all(server.failures()).count());
        assertEquals(0, server.failedCalls().total().count());
        // The pause between the two is of neither.
        assertTrue(Seen.all(server.failures()).maxNs().orElseThrow() < PAUSE.toNanoseconds());
    }

    private static final class FailsOnce implements HttpRequestInterceptor {
        private boolean hasFailed;

        @Override
        public void process(HttpRequest request, EntityDetails body, HttpContext context) throws IOException {
            if (!hasFailed) {
                hasFailed = true;
                throw new IOException("planted");
            }
        }
    }

    @Test
    void aRedirectIsAnAttemptAtTheOtherServer() throws Exception {
        try (Upstream first = new Upstream();
                Upstream second = new Upstream()) {
            String url = first.url("size=10?to=" + second.url("size=20"));
            get(url);
            getAsync(url);
            for (HttpClientMetrics all : new HttpClientMetrics[] {metrics, asyncMetrics}) {
                assertEquals(2, all.servers().size());
                for (ServerMetrics server : all.servers()) {
                    boolean isFirst = server.port() == first.port();
                    assertEquals(isFirst ? "{GET 302=1}" : "{GET 200=1}", Seen.rows(server.requests()));
                    // The call counts for the server that it was made to.
                    assertEquals(isFirst ? "{1=1}" : "{}", Seen.rows(server.calls()));
                    assertEquals("{}", Seen.rows(server.failures()));
                    assertEquals(1, server.waits().total().count());
                }
            }
        }
    }

    @Test
    void anAnswerToAChallengeIsAnAttempt() throws Exception {
        try (Upstream upstream = new Upstream()) {
            BasicCredentialsProvider known = new BasicCredentialsProvider();
            known.setCredentials(
                    new AuthScope(new HttpHost("localhost", upstream.port())),
                    new UsernamePasswordCredentials("planted", "secret".toCharArray()));
            credentials = known;
            get(upstream.url("status=401,size=10"));
            check(metrics, "{GET 200=1, GET 401=1}", "{1=1}");
            assertEquals(1, upstream.connections());
            assertEquals(1, Seen.only(metrics).waits().total().count());
            getAsync(upstream.url("status=401,size=10"));
            check(asyncMetrics, "{GET 200=1, GET 401=1}", "{1=1}");
            assertEquals(1, Seen.only(asyncMetrics).waits().total().count());
        }
    }

    @Test
    void serversBeyondTheLimitAreCountedTogether() {
        for (int port = 1; port <= HttpClientMetrics.SERVERS_MAX + 5; port++) {
            metrics.server(new HttpHost("localhost", port)).waits().record(port);
        }
        assertEquals(HttpClientMetrics.SERVERS_MAX + 1, metrics.servers().size());
        ServerMetrics other = metrics.servers().get(HttpClientMetrics.SERVERS_MAX);
        assertEquals("_OTHER", other.address());
        assertEquals(5, other.waits().total().count());
    }

    private static void check(HttpClientMetrics metrics, String requests, String calls) throws Exception {
        Seen.until("at rest", () -> Seen.isAtRest(metrics));
        ServerMetrics server = Seen.only(metrics);
        assertEquals(requests, Seen.rows(server.requests()));
        assertEquals(calls, Seen.rows(server.calls()));
        assertEquals("{}", Seen.rows(server.failures()));
        assertEquals(0, server.failedCalls().total().count());
    }

    private void get(String url) throws Exception {
        try (CloseableHttpClient client = metrics.install(HttpClients.custom()
                        .setDefaultCredentialsProvider(credentials)
                        .setRetryStrategy(new DefaultHttpRequestRetryStrategy(1, PAUSE)))
                .build()) {
            assertEquals(200, (int) client.execute(new HttpGet(url), response -> {
                EntityUtils.consume(response.getEntity());
                return response.getCode();
            }));
        }
    }

    private void getAsync(String url) throws Exception {
        try (CloseableHttpAsyncClient client = asyncMetrics
                .install(HttpAsyncClients.custom()
                        .setDefaultCredentialsProvider(credentials)
                        .setRetryStrategy(new DefaultHttpRequestRetryStrategy(1, PAUSE)))
                .build()) {
            client.start();
            assertEquals(200, client.execute(SimpleRequestBuilder.get(url).build(), null)
                    .get(5, TimeUnit.SECONDS)
                    .getCode());
        }
    }
}
