package dev.parallax.suites.httpclient5;

import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import javax.net.ServerSocketFactory;

/**
 * A real server on loopback that responds as a scenario defines: each byte, when, and what happens to the
 * connection.
 */
final class Server implements AutoCloseable {
    final AtomicInteger connections = new AtomicInteger();
    final AtomicInteger requests = new AtomicInteger();
    final AtomicInteger now = new AtomicInteger();
    final AtomicInteger most = new AtomicInteger();

    private final ServerSocket listener;
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final Set<Socket> open = ConcurrentHashMap.newKeySet();
    private final Handler handler;

    /** What is done with one request. */
    interface Handler {
        void answer(Exchange exchange) throws IOException, InterruptedException;
    }

    Server(Handler handler) throws IOException {
        this(ServerSocketFactory.getDefault(), handler);
    }

    Server(ServerSocketFactory factory, Handler handler) throws IOException {
        this.handler = handler;
        listener = factory.createServerSocket(0, 50, InetAddress.getLoopbackAddress());
        threads.execute(this::accept);
    }

    int port() {
        return listener.getLocalPort();
    }

    String url(String path) {
        return "http://localhost:" + port() + path;
    }

    private void accept() {
        try {
            while (true) {
                Socket socket = listener.accept();
                socket.setTcpNoDelay(true);
                open.add(socket);
                connections.incrementAndGet();
                threads.execute(() -> serve(socket));
            }
        } catch (IOException e) {
            // The scenario is over.
        }
    }

    private void serve(Socket socket) {
        try (socket) {
            InputStream in = new BufferedInputStream(socket.getInputStream());
            while (true) {
                Exchange exchange = Exchange.read(in, socket, requests);
                if (exchange == null) {
                    return;
                }
                most.accumulateAndGet(now.incrementAndGet(), Math::max);
                try {
                    handler.answer(exchange);
                } finally {
                    now.decrementAndGet();
                }
                if (exchange.isOver) {
                    return;
                }
            }
        } catch (IOException e) {
            // The client went away, which scenarios have it do.
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            open.remove(socket);
        }
    }

    /** Sends a FIN on all connections, like a server after its idle timeout. The client must close them. */
    void endConnections() throws IOException {
        for (Socket socket : open) {
            socket.shutdownOutput();
        }
    }

    /** How many connections the client has not closed. */
    int open() {
        return open.size();
    }

    @Override
    public void close() throws IOException {
        listener.close();
        for (Socket socket : open) {
            socket.close();
        }
        threads.shutdownNow();
    }

    /** One request that needs a response. */
    static final class Exchange {
        final String method;
        final String target;
        final Map<String, String> headers;

        /** Of the server, from 1 on. */
        final int number;

        private final InputStream in;
        private final Socket socket;
        private boolean isOver;

        private Exchange(String line, Map<String, String> headers, int number, InputStream in, Socket socket) {
            method = line.split(" ")[0];
            target = line.split(" ")[1];
            this.headers = headers;
            this.number = number;
            this.in = in;
            this.socket = socket;
        }

        private static Exchange read(InputStream in, Socket socket, AtomicInteger requests) throws IOException {
            String line = line(in);
            if (line == null) {
                return null;
            }
            Map<String, String> headers = new TreeMap<>();
            for (String header = line(in); header != null && !header.isEmpty(); header = line(in)) {
                int colon = header.indexOf(':');
                headers.put(header.substring(0, colon).toLowerCase(Locale.ROOT), header.substring(colon + 1).trim());
            }
            return new Exchange(line, headers, requests.incrementAndGet(), in, socket);
        }

        private static String line(InputStream in) throws IOException {
            StringBuilder line = new StringBuilder();
            for (int read = in.read(); read != '\n'; read = in.read()) {
                if (read < 0) {
                    return null;
                }
                line.append(read == '\r' ? "" : (char) read);
            }
            return line.toString();
        }

        /** Sends 100 Continue first if the client waits for it. */
        String body() throws IOException {
            if (headers.containsKey("expect")) {
                raw("HTTP/1.1 100 Continue\r\n\r\n");
            }
            int length = Integer.parseInt(headers.getOrDefault("content-length", "0"));
            return new String(in.readNBytes(length), StandardCharsets.ISO_8859_1);
        }

        void send(int status, String body, String... more) throws IOException {
            StringBuilder head = new StringBuilder("HTTP/1.1 " + status + " planted\r\n");
            head.append("Content-Length: ").append(body.length()).append("\r\n");
            for (String header : more) {
                head.append(header).append("\r\n");
            }
            raw(head + "\r\n" + (method.equals("HEAD") ? "" : body));
        }

        void raw(String text) throws IOException {
            OutputStream out = socket.getOutputStream();
            out.write(text.getBytes(StandardCharsets.ISO_8859_1));
            out.flush();
        }

        /** After what was sent, if anything was. */
        void end() {
            isOver = true;
        }

        /** Everything from here on goes to {@code port}, and what comes from there comes back. */
        void tunnel(int port) throws IOException {
            isOver = true;
            try (Socket to = new Socket(InetAddress.getLoopbackAddress(), port)) {
                Thread back = new Thread(() -> copy(to, socket), "tunnel");
                back.start();
                in.transferTo(to.getOutputStream());
            }
        }

        private static void copy(Socket from, Socket to) {
            try (from;
                    to) {
                from.getInputStream().transferTo(to.getOutputStream());
            } catch (IOException e) {
                // One of the two has ended.
            }
        }
    }
}
