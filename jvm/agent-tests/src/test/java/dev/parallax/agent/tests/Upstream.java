package dev.parallax.agent.tests;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** A real server on loopback that answers after a while. */
final class Upstream implements AutoCloseable {
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final HttpServer server;

    Upstream(int delayMs) throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.setExecutor(threads);
        server.createContext("/", exchange -> {
            try (exchange) {
                Thread.sleep(delayMs);
                exchange.sendResponseHeaders(200, 2);
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

    @Override
    public void close() {
        server.stop(0);
        threads.shutdownNow();
    }
}
