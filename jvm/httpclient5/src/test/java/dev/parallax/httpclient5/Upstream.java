package dev.parallax.httpclient5;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A real server on loopback that does what a path requests: {@code /head=100,body=50,size=10,status=200} waits before
 * the head, again before the body, and responds with this many bytes; {@code fail=1} makes the first request a 503,
 * {@code to=URL} is a redirect.
 */
final class Upstream implements AutoCloseable {
    static {
        // Or the second write of a response waits for the 40 ms of the client's delayed acknowledgement.
        System.setProperty("sun.net.httpserver.nodelay", "true");
    }

    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final AtomicInteger requests = new AtomicInteger();
    private final Set<InetSocketAddress> connections = ConcurrentHashMap.newKeySet();
    private final HttpServer server;

    Upstream() throws IOException {
        this(HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0));
    }

    Upstream(HttpServer server) {
        this.server = server;
        server.setExecutor(threads);
        server.createContext("/", this::answer);
        server.start();
    }

    int port() {
        return server.getAddress().getPort();
    }

    String url(String what) {
        return "http://localhost:" + port() + "/" + what;
    }

    int requests() {
        return requests.get();
    }

    int connections() {
        return connections.size();
    }

    @Override
    public void close() {
        server.stop(0);
        threads.shutdownNow();
    }

    private void answer(HttpExchange exchange) throws IOException {
        int number = requests.incrementAndGet();
        connections.add(exchange.getRemoteAddress());
        String path = exchange.getRequestURI().getPath();
        exchange.getRequestBody().readAllBytes();
        try (exchange) {
            sleep(number(path, "head", 0));
            int status = number <= number(path, "fail", 0) ? 503 : number(path, "status", 200);
            String query = exchange.getRequestURI().getQuery();
            if (query != null) {
                exchange.getResponseHeaders().add("Location", query.substring("to=".length()));
                status = 302;
            }
            if (status == 401 && exchange.getRequestHeaders().containsKey("Authorization")) {
                status = 200;
            }
            if (status == 401) {
                exchange.getResponseHeaders().add("WWW-Authenticate", "Basic realm=\"planted\"");
            }
            int size = number(path, "size", 2);
            boolean isEmpty = size == 0 || exchange.getRequestMethod().equals("HEAD");
            exchange.sendResponseHeaders(status, isEmpty ? -1 : size);
            if (!isEmpty) {
                OutputStream body = exchange.getResponseBody();
                body.write(new byte[size / 2]);
                body.flush();
                sleep(number(path, "body", 0));
                body.write(new byte[size - size / 2]);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static void sleep(int ms) throws InterruptedException {
        if (ms > 0) {
            Thread.sleep(ms);
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
