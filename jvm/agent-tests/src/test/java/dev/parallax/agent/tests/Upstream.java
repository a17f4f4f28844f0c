package dev.parallax.agent.tests;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** A real server on loopback that responds after a while: a path that ends in a number requests that status. */
final class Upstream implements AutoCloseable {
    static {
        // It writes head and body apart: a kernel that waits for the first one's receipt would add 40 ms to what is planted.
        System.setProperty("sun.net.httpserver.nodelay", "true");
    }

    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final ConcurrentMap<String, Integer> answers = new ConcurrentHashMap<>();
    private final ConcurrentMap<String, Answer> byQuery = new ConcurrentHashMap<>();
    private final HttpServer server;

    /** When a request had come, and when its response was about to go: of {@link System#nanoTime()}, one clock for all JVMs. */
    record Answer(long arrivedNs, long readyNs) {}

    Upstream(int delayMs) throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.setExecutor(threads);
        server.createContext("/", exchange -> {
            try (exchange) {
                long arrivedNs = System.nanoTime();
                Thread.sleep(delayMs);
                String asked = exchange.getRequestURI().getPath().substring(1);
                int status = asked.isEmpty() ? 200 : Integer.parseInt(asked);
                answers.merge(exchange.getRequestMethod() + " " + status, 1, Integer::sum);
                String query = exchange.getRequestURI().getQuery();
                if (query != null) {
                    byQuery.put(query, new Answer(arrivedNs, System.nanoTime()));
                }
                exchange.sendResponseHeaders(status, 2);
                exchange.getResponseBody().write(new byte[] {'o', 'k'});
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        });
        server.start();
    }

    String url() {
        return "http://localhost:" + port() + "/";
    }

    int port() {
        return server.getAddress().getPort();
    }

    /** How many responses it began, by method and status. */
    Map<String, Integer> answers() {
        return new TreeMap<>(answers);
    }

    /** The last one of a request with this query. */
    Answer answer(String query) {
        return byQuery.get(query);
    }

    @Override
    public void close() {
        server.stop(0);
        threads.shutdownNow();
    }
}
