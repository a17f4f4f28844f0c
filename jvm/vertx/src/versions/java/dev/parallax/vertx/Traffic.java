package dev.parallax.vertx;

import io.vertx.core.Future;
import io.vertx.core.Vertx;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.datagram.DatagramSocket;
import io.vertx.core.datagram.DatagramSocketOptions;
import io.vertx.core.eventbus.MessageConsumer;
import io.vertx.core.http.HttpClient;
import io.vertx.core.http.HttpClientOptions;
import io.vertx.core.http.HttpClientRequest;
import io.vertx.core.http.HttpMethod;
import io.vertx.core.http.HttpServer;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.http.HttpVersion;
import io.vertx.core.http.PoolOptions;
import io.vertx.core.http.WebSocket;
import io.vertx.core.http.WebSocketClient;
import io.vertx.core.net.NetClient;
import io.vertx.core.net.NetServer;
import io.vertx.core.net.NetSocket;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** A known amount of everything Vert.x does, over real sockets. */
final class Traffic {
    static final int GETS = 20;
    static final int POSTS = 7;
    static final int POST_BYTES = 12_345;
    static final int MISSING = 3;
    static final int STREAMS = 8;
    static final int ANSWER_BYTES = 13;
    static final int TASKS = 9;
    static final int MESSAGES = 6;
    static final int TCP_BYTES = 40_000;
    static final int DATAGRAMS = 4;
    static final int DATAGRAM_BYTES = 100;

    private final Vertx vertx;

    Traffic(Vertx vertx) {
        this.vertx = vertx;
    }

    static <T> T done(Future<T> future) throws Exception {
        return future.toCompletionStage().toCompletableFuture().get(20, TimeUnit.SECONDS);
    }

    void all() throws Exception {
        http();
        webSocket();
        tasks();
        eventBus();
        tcp();
        datagrams();
    }

    void http() throws Exception {
        CompletableFuture<HttpServerRequest> never = new CompletableFuture<>();
        HttpServer server = done(vertx.createHttpServer()
                .requestHandler(request -> {
                    if (request.path().equals("/never")) {
                        never.complete(request);
                        return;
                    }
                    request.routed("/planted");
                    request.body().onSuccess(body -> request.response()
                            .setStatusCode(request.path().equals("/missing") ? 404 : 200)
                            .end("Hello, World!"));
                })
                .listen(0, "localhost"));
        int port = server.actualPort();
        HttpClient one = vertx.createHttpClient(new HttpClientOptions(), new PoolOptions().setHttp1MaxSize(1));
        List<Future<Buffer>> answers = new ArrayList<>();
        for (int n = 0; n < GETS; n++) {
            answers.add(ask(one, HttpMethod.GET, port, "/a?n=" + n, 0));
        }
        for (int n = 0; n < POSTS; n++) {
            answers.add(ask(one, HttpMethod.POST, port, "/b", POST_BYTES));
        }
        for (int n = 0; n < MISSING; n++) {
            answers.add(ask(one, HttpMethod.GET, port, "/missing", 0));
        }
        HttpClient two = vertx.createHttpClient(
                new HttpClientOptions().setProtocolVersion(HttpVersion.HTTP_2).setHttp2ClearTextUpgrade(false));
        for (int n = 0; n < STREAMS; n++) {
            answers.add(ask(two, HttpMethod.PUT, port, "/c", 0));
        }
        for (Future<Buffer> answer : answers) {
            done(answer);
        }
        HttpClientRequest given = done(one.request(HttpMethod.DELETE, port, "localhost", "/never"));
        given.end();
        CountDownLatch closed = new CountDownLatch(1);
        never.get(20, TimeUnit.SECONDS).connection().closeHandler(nothing -> closed.countDown());
        given.reset();
        if (!closed.await(20, TimeUnit.SECONDS)) {
            throw new AssertionError("the connection of a request that was reset stays open");
        }
        done(one.close());
        done(two.close());
        done(server.close());
    }

    private static Future<Buffer> ask(HttpClient client, HttpMethod method, int port, String uri, int bytes) {
        return client.request(method, port, "localhost", uri)
                .compose(request -> bytes == 0 ? request.send() : request.send(Buffer.buffer(new byte[bytes])))
                .compose(response -> response.body());
    }

    void webSocket() throws Exception {
        HttpServer server = done(vertx.createHttpServer()
                .webSocketHandler(socket -> socket.handler(socket::write))
                .listen(0, "localhost"));
        // Vert.x closes a client, and its connections, when the garbage collector finds it without a reference.
        WebSocketClient client = vertx.createWebSocketClient();
        WebSocket socket = done(client.connect(server.actualPort(), "localhost", "/ws"));
        CountDownLatch echoed = new CountDownLatch(1);
        socket.handler(buffer -> echoed.countDown());
        socket.write(Buffer.buffer("x"));
        if (!echoed.await(20, TimeUnit.SECONDS)) {
            throw new AssertionError("no echo");
        }
        done(socket.close());
        done(client.close());
        done(server.close());
    }

    void tasks() throws Exception {
        List<Future<Integer>> all = new ArrayList<>();
        for (int n = 0; n < TASKS; n++) {
            int mine = n;
            all.add(vertx.executeBlocking(() -> mine, false));
        }
        for (Future<Integer> one : all) {
            done(one);
        }
    }

    void eventBus() throws Exception {
        CountDownLatch had = new CountDownLatch(3 * MESSAGES);
        MessageConsumer<String> answers = vertx.eventBus().consumer("planted.answers", message -> {
            had.countDown();
            message.reply("yes");
        });
        MessageConsumer<String> silent = vertx.eventBus().consumer("planted.silent", message -> {
            had.countDown();
            message.fail(7, "planted");
        });
        for (int n = 0; n < MESSAGES; n++) {
            done(vertx.eventBus().request("planted.answers", "?"));
            vertx.eventBus().send("planted.silent", "!");
            vertx.eventBus().publish("planted.answers", "?!");
        }
        if (!had.await(20, TimeUnit.SECONDS)) {
            throw new AssertionError("messages are missing: " + had.getCount());
        }
        CountDownLatch failed = new CountDownLatch(1);
        vertx.eventBus().request("planted.silent", "?").onFailure(thrown -> failed.countDown());
        if (!failed.await(20, TimeUnit.SECONDS)) {
            throw new AssertionError("no failure");
        }
        done(answers.unregister());
        done(silent.unregister());
    }

    void tcp() throws Exception {
        NetServer server = done(vertx.createNetServer()
                .connectHandler(socket -> socket.handler(socket::write))
                .listen(0, "localhost"));
        NetClient client = vertx.createNetClient();
        NetSocket socket = done(client.connect(server.actualPort(), "localhost"));
        CompletableFuture<Integer> echoed = new CompletableFuture<>();
        int[] bytes = new int[1];
        socket.handler(buffer -> {
            bytes[0] += buffer.length();
            if (bytes[0] == TCP_BYTES) {
                echoed.complete(TCP_BYTES);
            }
        });
        socket.write(Buffer.buffer(new byte[TCP_BYTES]));
        echoed.get(20, TimeUnit.SECONDS);
        done(socket.close());
        done(client.close());
        done(server.close());
    }

    void datagrams() throws Exception {
        CountDownLatch had = new CountDownLatch(DATAGRAMS);
        DatagramSocket to = vertx.createDatagramSocket(new DatagramSocketOptions());
        to.handler(packet -> had.countDown());
        done(to.listen(0, "127.0.0.1"));
        DatagramSocket from = vertx.createDatagramSocket(new DatagramSocketOptions());
        for (int n = 0; n < DATAGRAMS; n++) {
            done(from.send(Buffer.buffer(new byte[DATAGRAM_BYTES]), to.localAddress().port(), "127.0.0.1"));
        }
        if (!had.await(20, TimeUnit.SECONDS)) {
            throw new AssertionError("datagrams are missing: " + had.getCount());
        }
        done(from.close());
        done(to.close());
    }
}
