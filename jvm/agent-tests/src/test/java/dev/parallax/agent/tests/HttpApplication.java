package dev.parallax.agent.tests;

import java.util.ArrayList;
import java.util.List;
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
 * An application with a pool of two and four concurrent callers. Arguments: the kind of client, the server's URL, how
 * often a builder builds before it builds the client that is used, the URL of a server that is only used to load the
 * client's classes. For each measured call it prints its number, which is also in the request, and when it began and
 * ended, in nanoseconds.
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
                    atOnce(url.equals(arguments[1]), number -> client.execute(new HttpGet(url + "?" + number), response -> {
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
                    atOnce(url.equals(arguments[1]), number -> {
                        SimpleHttpRequest request = SimpleRequestBuilder.get(url + "?" + number).build();
                        return client.execute(request, null).get().getCode();
                    });
                }
            }
        }
    }

    private interface Call {
        int status(int number) throws Exception;
    }

    private static void atOnce(boolean counts, Call call) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(CALLERS);
        try {
            List<Future<Integer>> all = new ArrayList<>();
            for (int i = 0; i < CALLERS; i++) {
                int number = i;
                all.add(threads.submit(() -> {
                    long begunNs = System.nanoTime();
                    int status = call.status(number);
                    if (counts) {
                        System.out.println(number + "," + begunNs + "," + System.nanoTime());
                    }
                    return status;
                }));
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
