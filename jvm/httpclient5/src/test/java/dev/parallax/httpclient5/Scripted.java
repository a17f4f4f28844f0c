package dev.parallax.httpclient5;

import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/**
 * A server that reads to the end of a head, writes the same bytes to every client, then closes, resets, or is
 * silent.
 */
final class Scripted implements AutoCloseable {
    private static final int CONNECTIONS_MAX = 20;

    /** What happens after the bytes of a response. */
    enum Then {
        CLOSE,
        RESET,
        SILENCE
    }

    private final ServerSocket listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    private final Thread thread;
    private final String answer;
    private final Then then;
    private final String end;

    Scripted(String answer, Then then) throws IOException {
        this(answer, then, "\r\n\r\n");
    }

    /** @param end what it reads up to */
    Scripted(String answer, Then then, String end) throws IOException {
        this.end = end;
        this.answer = answer;
        this.then = then;
        thread = new Thread(this::serve, "scripted");
        thread.start();
    }

    int port() {
        return listener.getLocalPort();
    }

    String url() {
        return "http://localhost:" + port() + "/";
    }

    private void serve() {
        Socket[] open = new Socket[CONNECTIONS_MAX];
        try {
            for (int i = 0; i < CONNECTIONS_MAX; i++) {
                open[i] = listener.accept();
                answer(open[i]);
            }
        } catch (IOException e) {
            // The listener was closed: the test is over.
        } finally {
            for (Socket socket : open) {
                close(socket);
            }
        }
    }

    private void answer(Socket socket) {
        try {
            readHead(socket.getInputStream());
            socket.getOutputStream().write(answer.getBytes(StandardCharsets.ISO_8859_1));
            socket.getOutputStream().flush();
            if (then == Then.RESET) {
                // Let the response be read first: a reset may take away what came before it.
                Thread.sleep(50);
                socket.setSoLinger(true, 0);
            }
            if (then != Then.SILENCE) {
                socket.close();
            }
        } catch (IOException e) {
            close(socket);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void readHead(InputStream in) throws IOException {
        int state = 0;
        for (int n = 0; n < 8192 && state < end.length(); n++) {
            int read = in.read();
            state = read == end.charAt(state) ? state + 1 : read == end.charAt(0) ? 1 : 0;
            if (read < 0) {
                return;
            }
        }
    }

    private static void close(Socket socket) {
        try {
            if (socket != null) {
                socket.close();
            }
        } catch (IOException e) {
            throw new AssertionError("a socket that cannot be closed", e);
        }
    }

    @Override
    public void close() throws IOException {
        listener.close();
        thread.interrupt();
    }
}
