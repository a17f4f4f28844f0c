package dev.parallax.agent.tests;

import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;

/**
 * An application with the JDK's client. Arguments: the server's URL, the URL of a port without a listener, how long the
 * application works on a response, in milliseconds. Prints how long each call with a response took, in nanoseconds.
 */
public final class JdkHttpApplication {
    private static final int ASYNC = 3;
    private static final int LONGEST_MS = 30_000;

    /** Long enough to be connected before: else it is the connect that was too slow. */
    private static final int PATIENCE_MS = 2_000;

    private static final HttpClient CLIENT =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    private JdkHttpApplication() {}

    public static void main(String[] arguments) throws Exception {
        URI server = URI.create(arguments[0]);
        sends(HttpRequest.newBuilder(server).build(), 200);
        sends(HttpRequest.newBuilder(server).build(), 200);
        sends(HttpRequest.newBuilder(server).POST(BodyPublishers.ofString("body")).build(), 200);
        sends(HttpRequest.newBuilder(server.resolve("/404")).build(), 404);
        sendsWithoutWaiting(HttpRequest.newBuilder(server.resolve("/201")).build(), Long.parseLong(arguments[2]));
        fails(HttpRequest.newBuilder(URI.create(arguments[1])).build());
        timesOut();
        cancels();
    }

    /**
     * Uses a server that never responds; otherwise, after a stall of the host, both the response and the timeout are
     * there.
     */
    private static void timesOut() throws Exception {
        try (ServerSocket silent = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            URI uri = URI.create("http://localhost:" + silent.getLocalPort() + "/");
            fails(HttpRequest.newBuilder(uri).timeout(Duration.ofMillis(PATIENCE_MS)).build());
        }
    }

    /** Who lets go of the future that he was given lets go of the connection. */
    private static void cancels() throws IOException {
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            URI uri = URI.create("http://localhost:" + server.getLocalPort() + "/");
            CompletableFuture<?> given = CLIENT.sendAsync(HttpRequest.newBuilder(uri).build(), BodyHandlers.ofString());
            server.setSoTimeout(LONGEST_MS);
            try (Socket connection = server.accept()) {
                connection.setSoTimeout(LONGEST_MS);
                InputStream in = connection.getInputStream();
                in.read();
                given.cancel(true);
                while (in.read() >= 0) {
                    // What is left of the request; a client that does not close is a timeout.
                    continue;
                }
            }
        }
    }

    private static void sends(HttpRequest request, int status) throws Exception {
        long begunNs = System.nanoTime();
        HttpResponse<String> response = CLIENT.send(request, BodyHandlers.ofString());
        print(request, response, begunNs);
        if (response.statusCode() != status || !response.body().equals("ok")) {
            throw new IllegalStateException("another answer: " + response);
        }
    }

    /** What is done with a response is not the client's time. */
    private static void sendsWithoutWaiting(HttpRequest request, long workMs) {
        List<CompletableFuture<HttpResponse<String>>> all = new ArrayList<>();
        for (int i = 0; i < ASYNC; i++) {
            long begunNs = System.nanoTime();
            all.add(CLIENT.sendAsync(request, BodyHandlers.ofString()).thenApply(response -> {
                print(request, response, begunNs);
                work(workMs);
                return response;
            }));
        }
        all.forEach(CompletableFuture::join);
    }

    private static void work(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new CompletionException(e);
        }
    }

    private static void print(HttpRequest request, HttpResponse<?> response, long begunNs) {
        long ns = System.nanoTime() - begunNs;
        System.out.println(request.method() + " " + response.statusCode() + "=" + ns);
    }

    private static void fails(HttpRequest request) throws Exception {
        try {
            CLIENT.send(request, BodyHandlers.ofString());
        } catch (IOException expected) {
            return;
        }
        throw new IllegalStateException("answered");
    }
}
