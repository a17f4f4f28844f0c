package dev.parallax.vertx;

import com.sun.management.ThreadMXBean;
import dev.parallax.recorder.Catalog;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.vertx.core.Vertx;
import io.vertx.core.VertxBuilder;
import io.vertx.core.VertxOptions;
import io.vertx.core.http.HttpServer;
import io.vertx.core.http.HttpServerOptions;
import io.vertx.core.metrics.MetricsOptions;
import io.vertx.core.spi.VertxMetricsFactory;
import io.vertx.core.spi.metrics.HttpServerMetrics;
import io.vertx.core.spi.metrics.TCPMetrics;
import io.vertx.core.spi.metrics.VertxMetrics;
import io.vertx.micrometer.MicrometerMetricsFactory;
import io.vertx.micrometer.MicrometerMetricsOptions;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Proxy;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A server of one event loop for {@link PlaintextCost}: measured by nobody, by an SPI without a body, by
 * vertx-micrometer-metrics, or by us. Prints its port, and for each line that it reads the CPU time and the allocated bytes
 * of its event loop.
 */
final class PlaintextServer {
    private PlaintextServer() {}

    public static void main(String[] arguments) throws Exception {
        Vertx vertx = builder(arguments[0]).build();
        AtomicLong loop = new AtomicLong();
        HttpServer server = vertx.createHttpServer(new HttpServerOptions())
                .requestHandler(request -> {
                    if (loop.get() == 0) {
                        loop.set(Thread.currentThread().getId());
                    }
                    request.response()
                            .putHeader("Server", "planted")
                            .putHeader("Content-Type", "text/plain")
                            .end("Hello, World!");
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
                    + (thread > 0 ? threads.getThreadAllocatedBytes(thread) : 0));
        }
        System.exit(0);
    }

    private static VertxBuilder builder(String arm) throws Exception {
        VertxOptions options = new VertxOptions().setEventLoopPoolSize(1);
        VertxMetricsFactory factory = switch (arm) {
            case "off" -> null;
            case "no-op" -> nothing -> noOp();
            case "theirs" -> new MicrometerMetricsFactory(new SimpleMeterRegistry());
            default -> (VertxMetricsFactory) Class.forName(System.getProperty("parallax.vertx.package") + ".ParallaxMetricsFactory")
                    .getConstructor(Catalog.class)
                    .newInstance(new Catalog());
        };
        if (factory == null) {
            return Vertx.builder().with(options);
        }
        MetricsOptions metrics = arm.equals("theirs") ? new MicrometerMetricsOptions() : new MetricsOptions();
        return Vertx.builder().with(options.setMetricsOptions(metrics.setEnabled(true))).withMetrics(factory);
    }

    /** Its methods are called, and do nothing. */
    private static VertxMetrics noOp() {
        return (VertxMetrics) Proxy.newProxyInstance(
                VertxMetrics.class.getClassLoader(),
                new Class<?>[] {VertxMetrics.class},
                (proxy, method, arguments) -> switch (method.getName()) {
                    case "isMetricsEnabled" -> true;
                    case "createHttpServerMetrics" -> new NoServer();
                    case "createTcpServerMetrics" -> new NoTransport();
                    default -> null;
                });
    }

    @SuppressWarnings("rawtypes")
    private static final class NoServer implements HttpServerMetrics {}

    @SuppressWarnings({"rawtypes", "removal"})
    private static final class NoTransport implements TCPMetrics {}
}
