package dev.parallax.agent.report;

import dev.parallax.agent.run.Log;
import dev.parallax.agent.run.Threads;
import java.io.Closeable;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;

/**
 * Serves GET {@code /} as text and {@code /json} as JSON with current figures, on the loopback interface only.
 *
 * <p>Any user of this host may connect, and each connection takes a file descriptor from the application. So there are
 * at most {@value #CONNECTIONS}, each for at most 10 s; a further one replaces the oldest, so idle connections block
 * nobody. One agent thread serves them all.
 */
public final class Endpoint implements Runnable, Closeable {
    private static final int CONNECTIONS = 16;

    /** Queued in the kernel without a descriptor; a client that finds the queue full retries after a second. */
    private static final int BACKLOG = 64;

    private static final Duration LONGEST = Duration.ofSeconds(10);

    /** After a failure, for example for lack of descriptors, the next attempt would fail too; do not spin. */
    private static final long REST_MS = 100;

    private final Responses answers;
    private final long longestNs;
    private final ServerSocketChannel server;
    private final Selector selector;

    /** Oldest first. */
    private final Deque<Connection> open = new ArrayDeque<>();

    private Endpoint(Responses answers, Duration longest) throws IOException {
        this.answers = answers;
        this.longestNs = longest.toNanos();
        this.server = ServerSocketChannel.open();
        try {
            this.selector = Selector.open();
        } catch (Throwable e) {
            server.close();
            throw e;
        }
    }

    /**
     * Starts the endpoint.
     *
     * @param sources to report
     * @param port 0 for any free port
     * @return the running endpoint
     * @throws IOException if the port is in use
     */
    public static Endpoint start(List<Source> sources, int port) throws IOException {
        return start(sources, port, LONGEST);
    }

    static Endpoint start(List<Source> sources, int port, Duration longest) throws IOException {
        Endpoint endpoint = new Endpoint(new Responses(List.copyOf(sources)), longest);
        try {
            endpoint.listen(port);
            Threads.start(endpoint, "parallax-endpoint");
            return endpoint;
        } catch (Throwable e) {
            endpoint.close();
            throw e;
        }
    }

    private void listen(int port) throws IOException {
        server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), BACKLOG);
        server.configureBlocking(false);
        server.register(selector, SelectionKey.OP_ACCEPT);
    }

    /**
     * The port it listens on.
     *
     * @return the port
     */
    public int port() {
        return server.socket().getLocalPort();
    }

    /**
     * Stops it and frees the port; connections end a moment later.
     *
     * @throws IOException if it cannot be closed
     */
    @Override
    public void close() throws IOException {
        try {
            server.close();
        } finally {
            // Its keys stay open until the selector runs again or is closed.
            selector.close();
        }
    }

    @Override
    public void run() {
        while (server.isOpen()) {
            try {
                serveOnce();
            } catch (Throwable e) {
                if (server.isOpen()) {
                    Log.once("the endpoint failed to respond", e);
                    rest();
                }
            }
        }
        open.forEach(Connection::close);
    }

    /** Existing connections first, then at most one new one, so that a new connection leaves time for the others. */
    private void serveOnce() throws IOException {
        selector.select(this::advance, untilNextEndMs());
        // Somebody who interrupts all threads of a group would close every channel used from here on.
        Thread.interrupted();
        while (!open.isEmpty() && open.getFirst().endNs() - System.nanoTime() <= 0) {
            close(open.getFirst());
        }
        SocketChannel newcomer = server.accept();
        if (newcomer != null) {
            if (open.size() == CONNECTIONS) {
                close(open.getFirst());
            }
            take(newcomer);
        }
    }

    /** 0 means no timeout. */
    private long untilNextEndMs() {
        return open.isEmpty() ? 0 : Math.max(1, (open.getFirst().endNs() - System.nanoTime()) / 1_000_000);
    }

    private void take(SocketChannel newcomer) throws IOException {
        Connection connection = new Connection(newcomer, System.nanoTime() + longestNs);
        open.add(connection);
        try {
            newcomer.configureBlocking(false);
            newcomer.register(selector, SelectionKey.OP_READ, connection);
        } catch (IOException | RuntimeException e) {
            close(connection);
            throw e;
        }
    }

    private void advance(SelectionKey key) {
        if (key.attachment() instanceof Connection connection) {
            boolean isOver = true;
            try {
                isOver = connection.advance(key, answers);
            } catch (IOException e) {
                // The peer has disconnected.
            } finally {
                if (isOver) {
                    close(connection);
                }
            }
        }
    }

    private void close(Connection connection) {
        open.remove(connection);
        connection.close();
    }

    private static void rest() {
        try {
            Thread.sleep(REST_MS);
        } catch (InterruptedException e) {
            // Shorter rest.
        }
    }
}
