package dev.parallax.vertx;

import com.sun.management.ThreadMXBean;
import dev.parallax.recorder.Catalog;
import dev.parallax.vertx.metrics.ParallaxMetricsFactory;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.vertx.core.Handler;
import io.vertx.core.Vertx;
import io.vertx.core.VertxBuilder;
import io.vertx.core.VertxOptions;
import io.vertx.core.http.HttpServer;
import io.vertx.core.http.HttpServerOptions;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.metrics.MetricsOptions;
import io.vertx.core.spi.VertxMetricsFactory;
import io.vertx.core.spi.metrics.HttpServerMetrics;
import io.vertx.core.spi.metrics.TCPMetrics;
import io.vertx.core.spi.metrics.VertxMetrics;
import io.vertx.core.spi.observability.HttpResponse;
import io.vertx.micrometer.MicrometerMetricsFactory;
import io.vertx.micrometer.MicrometerMetricsOptions;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Proxy;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A server with one event loop for {@link ServerCost}: without metrics, with an empty SPI, with one that reads the
 * clock, with one that takes a known time, with vertx-micrometer-metrics, or with ours. Prints its port; then, for each
 * line it reads, the CPU time (ns) and allocated bytes of its event loop and the number of responses.
 */
final class CostServer {
    /** Added time per request in the planted arm, in nanoseconds. */
    static final long PLANTED_NS = 300;

    private CostServer() {}

    /** @param arguments the arm; the page; the port of PostgreSQL */
    public static void main(String[] arguments) throws Exception {
        Vertx vertx = builder(arguments[0]).build();
        Handler<HttpServerRequest> page = arguments[1].equals("fortunes")
                ? new Fortunes(vertx, Integer.parseInt(arguments[2]))
                : request -> request.response()
                        .putHeader("Server", "planted")
                        .putHeader("Content-Type", "text/plain")
                        .end("Hello, World!");
        AtomicLong loop = new AtomicLong();
        AtomicLong asked = new AtomicLong();
        HttpServer server = vertx.createHttpServer(new HttpServerOptions())
                .requestHandler(request -> {
                    if (loop.getPlain() == 0) {
                        loop.set(Thread.currentThread().getId());
                    }
                    asked.lazySet(asked.getPlain() + 1);
                    page.handle(request);
                })
                .listen(0, "localhost")
                .toCompletionStage()
                .toCompletableFuture()
                .get(20, TimeUnit.SECONDS);
        System.out.println(server.actualPort());
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        while (lines.readLine() != null) {
            long thread = loop.get();
            System.out.println((thread > 0 ? threads.getThreadCpuTime(thread) : 0) + " "
                    + (thread > 0 ? threads.getThreadAllocatedBytes(thread) : 0) + " " + asked.get());
        }
        System.exit(0);
    }

    private static VertxBuilder builder(String arm) {
        VertxOptions options = new VertxOptions().setEventLoopPoolSize(1);
        VertxMetricsFactory factory = switch (arm) {
            case "off" -> null;
            case "no-op" -> nothing -> noOp(new NoServer());
            case "clock" -> nothing -> noOp(new ClockedServer());
            case "planted" -> nothing -> noOp(new SlowServer());
            case "theirs" -> new MicrometerMetricsFactory(new SimpleMeterRegistry());
            default -> new ParallaxMetricsFactory(new Catalog());
        };
        if (factory == null) {
            return Vertx.builder().with(options);
        }
        MetricsOptions metrics = arm.equals("theirs") ? new MicrometerMetricsOptions() : new MetricsOptions();
        return Vertx.builder().with(options.setMetricsOptions(metrics.setEnabled(true))).withMetrics(factory);
    }

    /** Its methods are called and do nothing. */
    private static VertxMetrics noOp(Object server) {
        return (VertxMetrics) Proxy.newProxyInstance(
                VertxMetrics.class.getClassLoader(),
                new Class<?>[] {VertxMetrics.class},
                (proxy, method, arguments) -> switch (method.getName()) {
                    case "isMetricsEnabled" -> true;
                    case "createHttpServerMetrics" -> server;
                    case "createTcpServerMetrics" -> new NoTransport();
                    default -> null;
                });
    }

    @SuppressWarnings("rawtypes")
    private static class NoServer implements HttpServerMetrics {}

    /** Reads the clock twice, as any response timer has to. */
    private static final class ClockedServer extends NoServer {
        private long sumNs;

        @Override
        public void responseBegin(Object exchange, HttpResponse response) {
            sumNs -= System.nanoTime();
        }

        @Override
        public void responseEnd(Object exchange, HttpResponse response, long bytes) {
            sumNs += System.nanoTime();
        }
    }

    /** Takes {@link #PLANTED_NS} per request, plus less than two clock reads. */
    private static final class SlowServer extends NoServer {
        @Override
        public void responseEnd(Object exchange, HttpResponse response, long bytes) {
            long endNs = System.nanoTime() + PLANTED_NS;
            while (System.nanoTime() < endNs) {
                // Burns CPU time on purpose.
            }
        }
    }

    @SuppressWarnings({"rawtypes", "removal"})
    private static final class NoTransport implements TCPMetrics {}
}
