package dev.parallax.springboot;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A real server on loopback that waits this many milliseconds before it responds: {@code /head=100,size=10}. With
 * {@code times=1000} it sends the same again this often, or until it is no longer read. A request with {@code held=1}
 * waits until it is released.
 */
final class Upstream implements AutoCloseable {
    static {
        // Or the second write of a response waits for the 40 ms of the client's delayed acknowledgement.
        System.setProperty("sun.net.httpserver.nodelay", "true");
    }

    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final AtomicInteger held = new AtomicInteger();
    private final Semaphore released = new Semaphore(0);
    private final HttpServer server;
    private final String scheme;

    Upstream() throws IOException {
        this(HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0), "http");
    }

    Upstream(HttpServer server, String scheme) {
        this.server = server;
        this.scheme = scheme;
        server.setExecutor(threads);
        server.createContext("/", this::answer);
        server.start();
    }

    int port() {
        return server.getAddress().getPort();
    }

    String url(String what) {
        return scheme + "://localhost:" + port() + "/" + what;
    }

    /** Number of requests that were held so far, including those that were released. */
    int held() {
        return held.get();
    }

    void release(int requests) {
        released.release(requests);
    }

    @Override
    public void close() {
        server.stop(0);
        threads.shutdownNow();
    }

    private void answer(HttpExchange exchange) throws IOException {
        String path = exchange.getRequestURI().getPath();
        exchange.getRequestBody().readAllBytes();
        try (exchange) {
            if (number(path, "held", 0) == 1) {
                held.incrementAndGet();
                released.acquire();
            }
            Thread.sleep(number(path, "head", 0));
            byte[] answer = "x".repeat(number(path, "size", 2)).getBytes();
            exchange.getResponseHeaders().add("Content-Type", "text/plain");
            int times = number(path, "times", 1);
            exchange.sendResponseHeaders(200, (long) answer.length * times);
            try (OutputStream body = exchange.getResponseBody()) {
                for (int n = 0; n < times; n++) {
                    body.write(answer);
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static int number(String path, String name, int otherwise) {
        for (String part : path.substring(1).split(",")) {
            if (part.startsWith(name + "=")) {
                return Integer.parseInt(part.substring(name.length() + 1));
            }
        }
        return otherwise;
    }
}
