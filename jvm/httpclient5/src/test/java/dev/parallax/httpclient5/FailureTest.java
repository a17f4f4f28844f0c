package dev.parallax.httpclient5;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.apache.hc.client5.http.async.methods.SimpleHttpRequest;
import org.apache.hc.client5.http.async.methods.SimpleHttpResponse;
import org.apache.hc.client5.http.async.methods.SimpleRequestBuilder;
import org.apache.hc.client5.http.classic.methods.HttpGet;
import org.apache.hc.client5.http.config.ConnectionConfig;
import org.apache.hc.client5.http.config.RequestConfig;
import org.apache.hc.client5.http.impl.async.CloseableHttpAsyncClient;
import org.apache.hc.client5.http.impl.async.HttpAsyncClients;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.apache.hc.client5.http.impl.io.PoolingHttpClientConnectionManagerBuilder;
import org.apache.hc.client5.http.impl.nio.PoolingAsyncClientConnectionManager;
import org.apache.hc.client5.http.impl.nio.PoolingAsyncClientConnectionManagerBuilder;
import org.apache.hc.client5.http.nio.AsyncClientConnectionManager;
import org.apache.hc.core5.http.io.entity.EntityUtils;
import org.apache.hc.core5.io.CloseMode;
import org.apache.hc.core5.util.Timeout;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * Failures that were planted, each with a classic and an asynchronous client. If this fails, an exhausted pool is reported as a
 * broken server, or the other way round.
 */
class FailureTest {
    private static final Timeout SOON = Timeout.ofMilliseconds(150);
    private static final Timeout LATE = Timeout.ofSeconds(10);
    private static final String OK = "HTTP/1.1 200 OK\r\n";

    private final HttpClientMetrics metrics = new HttpClientMetrics();
    private final HttpClientMetrics asyncMetrics = new HttpClientMetrics();

    @AfterEach
    void nothingIsLeftCounted() throws Exception {
        Seen.until("classic at rest", () -> Seen.isAtRest(metrics));
        Seen.until("asynchronous at rest", () -> Seen.isAtRest(asyncMetrics));
    }

    @Test
    void aRefusedConnect() throws Exception {
        int port;
        try (ServerSocket closed = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = closed.getLocalPort();
        }
        check("http://localhost:" + port + "/", "{connect connect_refused=1}");
    }

    @Test
    void aNameThatThereIsNot() throws Exception {
        check("http://nowhere.invalid/", "{connect resolve_failed=1}");
    }

    @Test
    void aServerWithoutTls() throws Exception {
        try (Scripted server = new Scripted("what is this\r\n", Scripted.Then.CLOSE, "\0")) {
            check("https://localhost:" + server.port() + "/", "{tls tls_failed=1}");
        }
    }

    @Test
    void aServerThatClosesWithoutAnAnswer() throws Exception {
        try (Scripted server = new Scripted("", Scripted.Then.CLOSE)) {
            check(server.url(), "{wait closed_before_response=1}");
        }
    }

    @Test
    void aServerThatResets() throws Exception {
        try (Scripted server = new Scripted("", Scripted.Then.RESET)) {
            check(server.url(), "{wait reset=1}");
        }
    }

    @Test
    void aServerThatIsSilent() throws Exception {
        try (Scripted server = new Scripted("", Scripted.Then.SILENCE)) {
            check(server.url(), SOON, "{wait request_timeout=1}");
        }
    }

    @Test
    void anAnswerThatIsNotHttp() throws Exception {
        try (Scripted server = new Scripted(OK.replace("HTTP", "QTTP") + "\r\n", Scripted.Then.SILENCE)) {
            // The classic client skips such lines, and waits for one that is.
            checkClassic(server.url(), SOON, "{wait request_timeout=1}");
            checkAsync(server.url(), LATE, "{wait protocol_error=1}");
        }
    }

    @Test
    void aBodyThatEndsTooSoon() throws Exception {
        try (Scripted server = new Scripted(OK + "Content-Length: 10\r\n\r\nabc", Scripted.Then.CLOSE)) {
            check(server.url(), "{receive incomplete_response=1}");
        }
    }

    @Test
    void aChunkedBodyThatEndsTooSoon() throws Exception {
        try (Scripted server = new Scripted(OK + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", Scripted.Then.CLOSE)) {
            check(server.url(), "{receive incomplete_response=1}");
        }
    }

    @Test
    void aBodyThatIsReset() throws Exception {
        try (Scripted server = new Scripted(OK + "Content-Length: 10\r\n\r\nabc", Scripted.Then.RESET)) {
            check(server.url(), "{receive reset=1}");
        }
    }

    @Test
    void aBodyThatStops() throws Exception {
        try (Scripted server = new Scripted(OK + "Content-Length: 10\r\n\r\nabc", Scripted.Then.SILENCE)) {
            check(server.url(), SOON, "{receive request_timeout=1}");
        }
    }

    /** The pool of one is in use for longer than the second caller waits. */
    @Test
    void aPoolThatIsExhausted() throws Exception {
        try (Upstream upstream = new Upstream();
                CloseableHttpClient client = client(config(SOON, LATE));
                CloseableHttpAsyncClient async = asyncClient(config(SOON, LATE))) {
            HttpGet taking = new HttpGet(upstream.url("size=4"));
            client.execute(taking, response -> {
                assertThrows(IOException.class, () -> get(client, upstream.url("")));
                EntityUtils.consume(response.getEntity());
                return null;
            });
            ServerMetrics server = Seen.only(metrics);
            assertEquals("{pool_wait checkout_timeout=1}", Seen.rows(server.failures()));
            assertEquals("{GET 200=1}", Seen.rows(server.requests()));
            assertEquals(1, server.failedCalls().total().count());
            double waitedNs = server.failures().rows().get(0).recorder().total().sumNs();
            assertTrue(waitedNs >= SOON.toNanoseconds() * 0.99, "waited " + waitedNs);
            // A wait that failed is not counted among the successful ones.
            assertEquals(1, server.waits().total().count());

            Future<SimpleHttpResponse> slow = async.execute(request(upstream.url("head=1000")), null);
            Seen.until("the connection is taken", () -> !asyncMetrics.servers().isEmpty()
                    && Seen.only(asyncMetrics).active() == 1);
            failure(async.execute(request(upstream.url("")), null));
            assertEquals(200, slow.get(5, TimeUnit.SECONDS).getCode());
            server = Seen.only(asyncMetrics);
            assertEquals("{pool_wait checkout_timeout=1}", Seen.rows(server.failures()));
            assertEquals("{GET 200=1}", Seen.rows(server.requests()));
        }
    }

    /** The client lets who waits wait on, to the end of its patience; only who comes later is reported. */
    @Test
    void aPoolThatIsClosedWhileSomeoneWaits() throws Exception {
        try (Upstream upstream = new Upstream();
                CloseableHttpClient client = client(config(SOON, LATE))) {
            Thread[] waiter = new Thread[1];
            String body = upstream.url("size=100000,body=500");
            assertThrows(IOException.class, () -> client.execute(new HttpGet(body), response -> {
                waiter[0] = failing(client, new HttpGet(upstream.url("")));
                // By the pool itself: who is only on his way there is turned away.
                await("the other waits", () -> metrics.pools().get(0).getPending() == 1);
                client.close(CloseMode.IMMEDIATE);
                return EntityUtils.toByteArray(response.getEntity());
            }));
            join(waiter[0]);
            assertThrows(IllegalStateException.class, () -> get(client, upstream.url("")));
            assertEquals(
                    "{pool_wait checkout_timeout=1, pool_wait pool_closed=1, receive cancelled=1}",
                    Seen.rows(Seen.only(metrics).failures()));
        }
    }

    @Test
    void anAsynchronousPoolThatWasClosedBefore() throws Exception {
        PoolingAsyncClientConnectionManager shared = new PoolingAsyncClientConnectionManager();
        try (CloseableHttpAsyncClient async = asyncMetrics
                .install(HttpAsyncClients.custom().setConnectionManager(shared).setConnectionManagerShared(true))
                .build()) {
            async.start();
            shared.close();
            failure(async.execute(request("http://localhost:1/"), null));
            assertEquals("{pool_wait pool_closed=1}", Seen.rows(Seen.only(asyncMetrics).failures()));
        }
    }

    @Test
    void anAsynchronousPoolThatIsClosedWhileSomeoneWaits() throws Exception {
        try (Upstream upstream = new Upstream()) {
            checkClosed(upstream, asyncClient(LATE));
        }
    }

    @Test
    void anAsynchronousPoolThatIsClosedWhenTheClientCannotCancel() throws Exception {
        try (Upstream upstream = new Upstream()) {
            checkClosed(upstream, forgetful(upstream));
        }
    }

    /**
     * Whether a client that is closed immediately reports its open requests depends on which thread is first: the one
     * that closes the selector or the one that waits for it. What is not reported when the client's threads have ended
     * stays open until the application cancels it.
     */
    private void checkClosed(Upstream upstream, CloseableHttpAsyncClient async) throws Exception {
        Future<SimpleHttpResponse> sent = async.execute(request(upstream.url("head=2000")), null);
        Seen.until("it is sent", () -> upstream.requests() == 1);
        Future<SimpleHttpResponse> queued = async.execute(request(upstream.url("")), null);
        Seen.until("the other waits", () -> Seen.only(asyncMetrics).pending() == 1);
        async.close(CloseMode.IMMEDIATE);
        async.awaitShutdown(LATE);
        assertEquals(!sent.isDone(), sent.cancel(true));
        assertEquals(!queued.isDone(), queued.cancel(true));
        assertEquals(
                "{" + (queued.isCancelled() ? "pool_wait cancelled=1" : "connect connect_failed=1") + ", "
                        + (sent.isCancelled() ? "wait cancelled=1" : "wait closed_before_response=1") + "}",
                Seen.rows(Seen.only(asyncMetrics).failures()));
        assertEquals(2, Seen.only(asyncMetrics).failedCalls().total().count());
    }

    /** The client continues to the end of the response, which no one waits for. */
    @Test
    void anAsynchronousRequestThatTheClientCannotCancel() throws Exception {
        try (Upstream upstream = new Upstream();
                CloseableHttpAsyncClient async = forgetful(upstream)) {
            Future<SimpleHttpResponse> sent = async.execute(request(upstream.url("head=200")), null);
            assertTrue(sent.cancel(true));
            ServerMetrics server = Seen.only(asyncMetrics);
            checkFailed(server, "{wait cancelled=1}");
            assertEquals(1, server.active());
            Seen.until("the response is there", () -> Seen.isAtRest(asyncMetrics));
            checkFailed(server, "{wait cancelled=1}");
        }
    }

    @Test
    void aRequestThatIsCancelledInEachPhase() throws Exception {
        try (Upstream upstream = new Upstream();
                CloseableHttpClient client = client(LATE)) {
            HttpGet sent = new HttpGet(upstream.url("head=2000"));
            Thread sender = failing(client, sent);
            Seen.until("it is sent", () -> upstream.requests() == 1);
            HttpGet queued = new HttpGet(upstream.url(""));
            Thread waiter = failing(client, queued);
            Seen.until("the other waits", () -> Seen.only(metrics).pending() == 1);
            assertTrue(queued.cancel());
            waiter.join(5000);
            assertTrue(sent.cancel());
            sender.join(5000);
            ServerMetrics server = Seen.only(metrics);
            assertEquals("{pool_wait cancelled=1, wait cancelled=1}", Seen.rows(server.failures()));
        }
    }

    @Test
    void anAsynchronousRequestThatIsCancelledInEachPhase() throws Exception {
        try (Upstream upstream = new Upstream();
                CloseableHttpAsyncClient async = asyncClient(LATE)) {
            Future<SimpleHttpResponse> sent = async.execute(request(upstream.url("head=500")), null);
            Seen.until("it is sent", () -> upstream.requests() == 1);
            Future<SimpleHttpResponse> queued = async.execute(request(upstream.url("")), null);
            Seen.until("the other waits", () -> Seen.only(asyncMetrics).pending() == 1);
            assertTrue(queued.cancel(true));
            assertEquals(0, Seen.only(asyncMetrics).pending());
            assertTrue(sent.cancel(true));
            assertEquals(
                    "{pool_wait cancelled=1, wait cancelled=1}", Seen.rows(Seen.only(asyncMetrics).failures()));
        }
    }

    /** Nobody continues to read, so no exception reports it. */
    @Test
    void aResponseThatIsCancelledWhileNobodyReads() throws Exception {
        try (Upstream upstream = new Upstream();
                CloseableHttpClient client = client(LATE)) {
            HttpGet request = new HttpGet(upstream.url("size=4"));
            client.execute(request, response -> {
                assertTrue(request.cancel());
                assertEquals("{receive cancelled=1}", Seen.rows(Seen.only(metrics).failures()));
                assertTrue(Seen.isAtRest(metrics));
                return null;
            });
            assertEquals("{receive cancelled=1}", Seen.rows(Seen.only(metrics).failures()));
            assertEquals(200, get(client, upstream.url("")));
        }
    }

    @Test
    void aThreadThatIsInterruptedWhileItWaits() throws Exception {
        try (Upstream upstream = new Upstream();
                CloseableHttpClient client = client(LATE)) {
            client.execute(new HttpGet(upstream.url("size=4")), response -> {
                Thread waiter = failing(client, new HttpGet(upstream.url("")));
                await("the other waits", () -> Seen.only(metrics).pending() == 1);
                waiter.interrupt();
                join(waiter);
                EntityUtils.consume(response.getEntity());
                return null;
            });
            assertEquals("{pool_wait cancelled=1}", Seen.rows(Seen.only(metrics).failures()));
        }
    }

    /** Anything but a timeout is reported however long this host takes. */
    private void check(String url, String failures) throws Exception {
        check(url, LATE, failures);
    }

    private void check(String url, Timeout patience, String failures) throws Exception {
        checkClassic(url, patience, failures);
        checkAsync(url, patience, failures);
    }

    private void checkClassic(String url, Timeout patience, String failures) throws Exception {
        try (CloseableHttpClient client = client(patience)) {
            assertThrows(IOException.class, () -> get(client, url));
            checkFailed(Seen.only(metrics), failures);
        }
    }

    private void checkAsync(String url, Timeout patience, String failures) throws Exception {
        try (CloseableHttpAsyncClient async = asyncClient(patience)) {
            failure(async.execute(request(url), null));
            checkFailed(Seen.only(asyncMetrics), failures);
        }
    }

    private static void checkFailed(ServerMetrics server, String failures) {
        assertEquals(failures, Seen.rows(server.failures()));
        assertEquals("{}", Seen.rows(server.requests()));
        assertEquals(1, server.failedCalls().total().count());
        assertEquals("{}", Seen.rows(server.calls()));
    }

    private CloseableHttpClient client(Timeout patience) {
        return client(config(patience, patience));
    }

    private CloseableHttpClient client(RequestConfig config) {
        return metrics.install(HttpClients.custom()
                        .setConnectionManager(PoolingHttpClientConnectionManagerBuilder.create()
                                .setMaxConnTotal(1)
                                .setDefaultConnectionConfig(ConnectionConfig.custom().setConnectTimeout(LATE).build())
                                .build())
                        .setDefaultRequestConfig(config)
                        .disableAutomaticRetries())
                .build();
    }

    private CloseableHttpAsyncClient asyncClient(Timeout patience) {
        return asyncClient(config(patience, patience));
    }

    private CloseableHttpAsyncClient asyncClient(RequestConfig config) {
        return asyncClient(config, pool());
    }

    private CloseableHttpAsyncClient asyncClient(RequestConfig config, AsyncClientConnectionManager pool) {
        CloseableHttpAsyncClient client = asyncMetrics
                .install(HttpAsyncClients.custom()
                        .setConnectionManager(pool)
                        .setDefaultRequestConfig(config)
                        .disableAutomaticRetries())
                .build();
        client.start();
        return client;
    }

    private static AsyncClientConnectionManager pool() {
        return PoolingAsyncClientConnectionManagerBuilder.create()
                .setMaxConnTotal(1)
                .setDefaultConnectionConfig(ConnectionConfig.custom().setConnectTimeout(LATE).build())
                .build();
    }

    /**
     * A client cancels the step that was stored last. Here the thread that requests a connection stores its step only
     * after another thread has sent the request, which also happens on a busy host: that step has ended, and cancelling
     * it does nothing.
     */
    private CloseableHttpAsyncClient forgetful(Upstream upstream) {
        AsyncClientConnectionManager pool = pool();
        InvocationHandler late = (proxy, method, arguments) -> {
            Object result = method.invoke(pool, arguments);
            if (method.getName().equals("lease")) {
                Seen.until("it is sent", () -> upstream.requests() == 1);
            }
            return result;
        };
        Class<?> type = AsyncClientConnectionManager.class;
        Object proxy = Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, late);
        return asyncClient(config(LATE, LATE), (AsyncClientConnectionManager) proxy);
    }

    private static RequestConfig config(Timeout lease, Timeout response) {
        return RequestConfig.custom().setConnectionRequestTimeout(lease).setResponseTimeout(response).build();
    }

    private static SimpleHttpRequest request(String url) {
        return SimpleRequestBuilder.get(url).build();
    }

    private static void failure(Future<SimpleHttpResponse> future) {
        assertThrows(ExecutionException.class, () -> future.get(5, TimeUnit.SECONDS));
    }

    private static Thread failing(CloseableHttpClient client, HttpGet request) {
        Thread thread = new Thread(() -> assertThrows(Exception.class, () -> client.execute(request, r -> null)));
        thread.start();
        return thread;
    }

    private static int get(CloseableHttpClient client, String url) throws IOException {
        return client.execute(new HttpGet(url), response -> {
            EntityUtils.consume(response.getEntity());
            return response.getCode();
        });
    }

    private static void await(String what, BooleanSupplier isSo) {
        try {
            Seen.until(what, isSo);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    private static void join(Thread thread) {
        try {
            thread.join(5000);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
