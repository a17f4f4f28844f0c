package dev.parallax.agent.report;

import dev.parallax.agent.run.Say;
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
 * Answers GET {@code /} with text and {@code /json} with JSON, on loopback alone, as of now.
 *
 * <p>Whoever is on this host may connect, and each connection is a descriptor that the application lacks. So there are
 * {@value #CONNECTIONS} at most, each for 10 s at most, whatever is done on it; one more takes the place of the oldest, so
 * those who connect and say nothing keep nobody out. One thread of ours has them all, and no thread of the application.
 */
public final class Endpoint implements Runnable, Closeable {
    private static final int CONNECTIONS = 16;

    /** In the kernel, at no descriptor: one that finds no place there asks again after a second. */
    private static final int BACKLOG = 64;

    private static final Duration LONGEST = Duration.ofSeconds(10);

    /** What failed once fails again at once, as for want of descriptors: not as fast as a thread can. */
    private static final long REST_MS = 100;

    private final Answers answers;
    private final long longestNs;
    private final ServerSocketChannel server;
    private final Selector selector;

    /** The oldest first. */
    private final Deque<Connection> open = new ArrayDeque<>();

    private Endpoint(Answers answers, Duration longest) throws IOException {
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
     * Starts one.
     *
     * @param sources of what is told
     * @param port 0 for any
     * @return the one that answers
     * @throws IOException when the port is taken
     */
    public static Endpoint start(List<Source> sources, int port) throws IOException {
        return start(sources, port, LONGEST);
    }

    static Endpoint start(List<Source> sources, int port, Duration longest) throws IOException {
        Endpoint endpoint = new Endpoint(new Answers(List.copyOf(sources)), longest);
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
     * Where it listens.
     *
     * @return the port
     */
    public int port() {
        return server.socket().getLocalPort();
    }

    /**
     * Ends it. Its port is free then; connections end a moment later.
     *
     * @throws IOException when it cannot be closed
     */
    @Override
    public void close() throws IOException {
        try {
            server.close();
        } finally {
            // What it knows of stays open until it looks again, or is closed.
            selector.close();
        }
    }

    @Override
    public void run() {
        while (server.isOpen()) {
            try {
                turn();
            } catch (Throwable e) {
                if (server.isOpen()) {
                    Say.once("the endpoint failed to respond", e);
                    rest();
                }
            }
        }
        open.forEach(Connection::close);
    }

    /** Requests before newcomers, and one newcomer a turn: who takes a place leaves the others time to be answered. */
    private void turn() throws IOException {
        selector.select(this::goOn, untilNextEndMs());
        // Whoever interrupts all threads of a group would close each channel that is used from here on.
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

    /** 0 is without an end. */
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

    private void goOn(SelectionKey key) {
        if (key.attachment() instanceof Connection connection) {
            boolean isOver = true;
            try {
                isOver = connection.goOn(key, answers);
            } catch (IOException e) {
                // The other side is gone.
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
            // Then it rested less.
        }
    }
}
