package dev.parallax.agent.tests;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hc.client5.http.async.methods.SimpleHttpRequest;
import org.apache.hc.client5.http.async.methods.SimpleRequestBuilder;
import org.apache.hc.client5.http.classic.methods.HttpGet;
import org.apache.hc.client5.http.impl.async.CloseableHttpAsyncClient;
import org.apache.hc.client5.http.impl.async.HttpAsyncClientBuilder;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.HttpClientBuilder;
import org.apache.hc.client5.http.impl.io.PoolingHttpClientConnectionManagerBuilder;
import org.apache.hc.client5.http.impl.nio.PoolingAsyncClientConnectionManagerBuilder;
import org.apache.hc.core5.http.io.entity.EntityUtils;

/**
 * An application: a pool of two, four callers at once. Arguments: the kind of client, the server's URL, how often a builder
 * builds before it builds the one that is used, the URL of a server that is only there to load the client's classes.
 */
public final class HttpApplication {
    private static final int CALLERS = 4;

    private HttpApplication() {}

    public static void main(String[] arguments) throws Exception {
        int builds = Integer.parseInt(arguments[2]);
        if (arguments[0].equals("classic")) {
            HttpClientBuilder builder = HttpClientBuilder.create()
                    .setConnectionManager(PoolingHttpClientConnectionManagerBuilder.create()
                            .setMaxConnTotal(4)
                            .setMaxConnPerRoute(2)
                            .build());
            for (int n = 0; n < builds; n++) {
                builder.build();
            }
            try (CloseableHttpClient client = builder.build()) {
                for (String url : new String[] {arguments[3], arguments[1]}) {
                    atOnce(() -> client.execute(new HttpGet(url), response -> {
                        EntityUtils.consume(response.getEntity());
                        return response.getCode();
                    }));
                }
            }
        } else {
            HttpAsyncClientBuilder builder = HttpAsyncClientBuilder.create()
                    .setConnectionManager(PoolingAsyncClientConnectionManagerBuilder.create()
                            .setMaxConnTotal(4)
                            .setMaxConnPerRoute(2)
                            .build());
            for (int n = 0; n < builds; n++) {
                builder.build();
            }
            try (CloseableHttpAsyncClient client = builder.build()) {
                client.start();
                for (String url : new String[] {arguments[3], arguments[1]}) {
                    SimpleHttpRequest request = SimpleRequestBuilder.get(url).build();
                    atOnce(() -> client.execute(request, null).get().getCode());
                }
            }
        }
    }

    private static void atOnce(Callable<Integer> call) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(CALLERS);
        try {
            List<Future<Integer>> all = new ArrayList<>();
            for (int i = 0; i < CALLERS; i++) {
                all.add(threads.submit(call));
            }
            for (Future<Integer> one : all) {
                if (one.get() != 200) {
                    throw new IllegalStateException("status " + one.get());
                }
            }
        } finally {
            threads.shutdown();
        }
    }
}
