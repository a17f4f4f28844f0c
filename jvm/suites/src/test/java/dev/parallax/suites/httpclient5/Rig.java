package dev.parallax.suites.httpclient5;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.parallax.httpclient5.HttpClientMetrics;
import dev.parallax.httpclient5.ServerMetrics;
import dev.parallax.recorder.Durations;
import dev.parallax.recorder.LabelledRecorder;
import dev.parallax.suites.Eventually;
import java.io.IOException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.net.URI;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hc.client5.http.HttpRoute;
import org.apache.hc.client5.http.async.methods.SimpleHttpRequest;
import org.apache.hc.client5.http.async.methods.SimpleHttpResponse;
import org.apache.hc.client5.http.classic.methods.HttpUriRequestBase;
import org.apache.hc.client5.http.impl.async.CloseableHttpAsyncClient;
import org.apache.hc.client5.http.impl.async.HttpAsyncClientBuilder;
import org.apache.hc.client5.http.impl.async.HttpAsyncClients;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.HttpClientBuilder;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.apache.hc.client5.http.impl.io.PoolingHttpClientConnectionManager;
import org.apache.hc.client5.http.impl.nio.PoolingAsyncClientConnectionManager;
import org.apache.hc.client5.http.io.HttpClientConnectionManager;
import org.apache.hc.client5.http.nio.AsyncClientConnectionManager;
import org.apache.hc.core5.http.ContentType;
import org.apache.hc.core5.http.io.entity.EntityUtils;
import org.apache.hc.core5.http.io.entity.StringEntity;
import org.apache.hc.core5.io.CloseMode;
import org.apache.hc.core5.io.ModalCloseable;
import org.apache.hc.core5.pool.ConnPoolControl;

/** A client of either kind, created and measured in one of the ways, with one way to send requests. */
final class Rig implements AutoCloseable {
    /** The pool behind the client, as the scenario requested it. */
    final ConnPoolControl<HttpRoute> pool;

    /** How often the client leased from it. */
    final AtomicInteger leases = new AtomicInteger();

    private final Arm arm;
    private final HttpClientMetrics metrics = new HttpClientMetrics();
    private final ModalCloseable client;
    private final Map<Integer, Map<String, Long>> before = new TreeMap<>();

    Rig(Arm.Way way, Settings settings, Server... servers) {
        arm = way.arm();
        for (Server server : servers) {
            // The agent may know a server that had the same port.
            before.put(server.port(), arm == Arm.PLAIN ? Map.of() : figures(server.port()));
        }
        if (way.isAsync()) {
            PoolingAsyncClientConnectionManager manager = settings.asyncManager();
            HttpAsyncClientBuilder builder = settings.apply(HttpAsyncClients.custom()
                    .setConnectionManager(counting(AsyncClientConnectionManager.class, manager)));
            CloseableHttpAsyncClient built =
                    (arm == Arm.BUILDER ? metrics.install(builder) : builder).build();
            assertEquals(arm == Arm.BUILT, arm == Arm.BUILT && metrics.install(built));
            built.start();
            client = built;
            pool = manager;
        } else {
            PoolingHttpClientConnectionManager manager = settings.classicManager();
            HttpClientBuilder builder = settings.apply(HttpClients.custom()
                    .setConnectionManager(counting(HttpClientConnectionManager.class, manager)));
            CloseableHttpClient built = (arm == Arm.BUILDER ? metrics.install(builder) : builder).build();
            assertEquals(arm == Arm.BUILT, arm == Arm.BUILT && metrics.install(built));
            client = built;
            pool = manager;
        }
    }

    /** A manager that behaves like {@code manager}, and counts how often a connection was requested from it. */
    private <M> M counting(Class<M> type, M manager) {
        InvocationHandler handler = (proxy, method, arguments) -> {
            if (method.getName().equals("lease")) {
                leases.incrementAndGet();
            }
            try {
                return method.invoke(manager, arguments);
            } catch (InvocationTargetException e) {
                throw e.getCause();
            }
        };
        // Clients check whether it can be controlled, as it can without us.
        Class<?>[] types = {type, ConnPoolControl.class};
        return type.cast(Proxy.newProxyInstance(Rig.class.getClassLoader(), types, handler));
    }

    /** A call in progress. */
    interface Going {
        /** The status and the body, or what the client threw. */
        String end() throws Exception;

        void cancel();
    }

    /** The status and the body, with a blank between. */
    String get(String url) throws Exception {
        return start("GET", url, null).end();
    }

    /** For what only an application of this kind of client can do. */
    CloseableHttpClient classic() {
        return (CloseableHttpClient) client;
    }

    Going start(String method, String url, String body) {
        return client instanceof CloseableHttpClient classic
                ? start(classic, method, url, body)
                : start((CloseableHttpAsyncClient) client, method, url, body);
    }

    private static Going start(CloseableHttpClient client, String method, String url, String body) {
        HttpUriRequestBase request = new HttpUriRequestBase(method, URI.create(url));
        if (body != null) {
            request.setEntity(new StringEntity(body));
        }
        CompletableFuture<String> answer = new CompletableFuture<>();
        new Thread(() -> {
                    try {
                        answer.complete(client.execute(request, response -> response.getCode() + " "
                                + (response.getEntity() == null ? "" : EntityUtils.toString(response.getEntity()))));
                    } catch (IOException | RuntimeException e) {
                        answer.completeExceptionally(e);
                    }
                })
                .start();
        return new Going() {
            @Override
            public String end() throws Exception {
                return within(answer);
            }

            @Override
            public void cancel() {
                request.cancel();
            }
        };
    }

    private static Going start(CloseableHttpAsyncClient client, String method, String url, String body) {
        SimpleHttpRequest request = SimpleHttpRequest.create(method, url);
        if (body != null) {
            request.setBody(body, ContentType.TEXT_PLAIN);
        }
        Future<SimpleHttpResponse> answer = client.execute(request, null);
        return new Going() {
            @Override
            public String end() throws Exception {
                SimpleHttpResponse response = within(answer);
                return response.getCode() + " " + (response.getBodyText() == null ? "" : response.getBodyText());
            }

            @Override
            public void cancel() {
                answer.cancel(true);
            }
        };
    }

    private static <T> T within(Future<T> answer) throws Exception {
        try {
            return answer.get(20, TimeUnit.SECONDS);
        } catch (ExecutionException e) {
            throw e.getCause() instanceof Exception cause ? cause : e;
        }
    }

    /** Waits until nothing is lent: an asynchronous client has its response before its connection is back. */
    void rest() {
        Eventually.until("nothing is lent", () -> pool.getTotalStats().getLeased() == 0);
    }

    /** Compares the figures once everything is at rest with those that may be; what did not happen is not named. */
    void reported(Server of, String... expected) throws InterruptedException {
        if (arm == Arm.PLAIN) {
            return;
        }
        List<String> possible = List.of(expected);
        long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(5);
        while (!possible.contains(since(of)) && System.nanoTime() - endNs < 0) {
            Thread.sleep(1);
        }
        String seen = since(of);
        assertTrue(possible.contains(seen), () -> arm + ": " + seen + ", and the scenario did one of " + possible);
    }

    /** What was measured for it so far. */
    String since(Server server) {
        Map<String, Long> since = new TreeMap<>();
        figures(server.port()).forEach((name, count) -> {
            long more = count - before.get(server.port()).getOrDefault(name, 0L);
            if (more != 0) {
                since.put(name, more);
            }
        });
        return since.toString();
    }

    private Map<String, Long> figures(int port) {
        Map<String, Long> figures = new TreeMap<>();
        if (arm == Arm.AGENT) {
            Arm.ENDPOINT.figures("localhost:" + port).forEach((name, count) -> {
                if (NAMES.containsKey(name)) {
                    figures.put(NAMES.get(name), count);
                }
            });
            return figures;
        }
        for (ServerMetrics server : metrics.servers()) {
            if (server.port() == port) {
                figures.put("waits", server.waits().total().count());
                figures.put("connects", server.connects().total().count());
                figures.put("requests", sum(server.requests()));
                figures.put("failed", sum(server.failures()));
                figures.put("calls", sum(server.calls()));
                figures.put("calls failed", server.failedCalls().total().count());
                figures.put("pending", server.pending());
                figures.put("active", server.active());
            }
        }
        return figures;
    }

    /** As the agent names them. */
    private static final Map<String, String> NAMES = Map.of(
            "http.client.connection.wait_time", "waits",
            "http.client.connection.create_time", "connects",
            "http.client.request.duration", "requests",
            "http.client.request.failed", "failed",
            "http.client.call.duration", "calls",
            "http.client.call.failed", "calls failed",
            "http.client.connection.pending_requests", "pending",
            "http.client.open_connections.active", "active");

    private static long sum(LabelledRecorder labelled) {
        Durations sum = labelled.other().total();
        for (LabelledRecorder.Row row : labelled.rows()) {
            sum = sum.plus(row.recorder().total());
        }
        return sum.count();
    }

    void close(CloseMode mode) {
        client.close(mode);
    }

    @Override
    public void close() {
        client.close(CloseMode.IMMEDIATE);
    }
}
