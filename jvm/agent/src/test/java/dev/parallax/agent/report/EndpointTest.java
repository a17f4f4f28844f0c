package dev.parallax.agent.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.parallax.recorder.Recorder;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class EndpointTest {
    private static final Duration HOUR = Duration.ofHours(1);
    private static final String HOST = "Host: localhost\r\n\r\n";
    private static final int HEAD_MAX = 8 * 1024;

    /** Maximum wait of a read: only a test that fails waits this long. */
    private static final int PATIENCE_MS = 60_000;

    /** If this fails, the longest of two values is reported as what 999 of 1000 stay below. */
    @Test
    void aPercentileThatTheValuesDoNotCarryIsNotReported() throws Exception {
        for (int count : new int[] {1, 2, 5}) {
            assertEquals(List.of("too few", "too few", "too few", "too few"), percentiles(count));
        }
        assertEquals(List.of("0.001", "too few", "too few", "too few"), percentiles(6));
        assertEquals(List.of("0.001", "0.001", "0.001", "too few"), percentiles(3687));
        assertEquals(List.of("0.001", "0.001", "0.001", "0.001"), percentiles(3688));
    }

    /** As the text reports them; the JSON has to have the keys of those that are reported, and no other. */
    private static List<String> percentiles(int count) throws Exception {
        Recorder recorder = new Recorder();
        for (int i = 0; i < count; i++) {
            recorder.record(1_000);
        }
        int port = Endpoint.start(List.of(reader -> reader.durations(Series.PAUSE, "", recorder.total())), 0).port();
        String line = ask(port, "GET / HTTP/1.1\r\n" + HOST).lines()
                .filter(one -> one.startsWith("jvm.pause "))
                .findFirst()
                .orElseThrow();
        List<String> cells = new ArrayList<>();
        for (int end = line.length(); cells.size() < 6; end -= 11) {
            cells.add(0, line.substring(end - 10, end).strip());
        }
        assertEquals(List.of(Integer.toString(count), "0.001"), List.of(cells.remove(0), cells.remove(4)));
        String json = ask(port, "GET /json HTTP/1.1\r\n" + HOST);
        List<String> keys = List.of("\"p50.0_ns\"", "\"p90.0_ns\"", "\"p99.0_ns\"", "\"p99.9_ns\"");
        for (int i = 0; i < keys.size(); i++) {
            assertEquals(!cells.get(i).equals("too few"), json.contains(keys.get(i)), json);
        }
        assertTrue(json.contains("\"max_ns\":1000}"), json);
        return cells;
    }

    /**
     * As many connections as there are places, and then as many again, none of which ends by itself within this
     * test.
     */
    @Test
    void whoSaysNothingKeepsNobodyOut() throws Exception {
        int port = Endpoint.start(List.of(), 0, HOUR).port();
        List<Socket> silent = new ArrayList<>();
        try {
            for (int i = 0; i < 40; i++) {
                silent.add(connect(port));
                if (i % 2 == 0) {
                    silent.get(i).getOutputStream().write('G');
                }
            }
            assertEquals("HTTP/1.1 200 OK", status(ask(port, "GET / HTTP/1.1\r\n" + HOST)));
            // The oldest are closed; of the newest, as many as there are places minus that of the request, none is.
            assertTrue(isClosed(silent.get(0)));
            Socket newest = silent.get(39);
            newest.getOutputStream().write(("GET / HTTP/1.1\r\n" + HOST).getBytes(StandardCharsets.US_ASCII));
            assertEquals("HTTP/1.1 200 OK", status(answer(newest)));
        } finally {
            for (Socket socket : silent) {
                socket.close();
            }
        }
    }

    /** A time for each read would give who sends a byte now and then all the time there is. */
    @Test
    void aConnectionEndsInItsTimeWhateverComesOnIt() throws Exception {
        Duration longest = Duration.ofMillis(300);
        int port = Endpoint.start(List.of(), 0, longest).port();
        long beginNs = System.nanoTime();
        try (Socket socket = connect(port)) {
            socket.setSoTimeout(10);
            int sent = 0;
            while (sent < HEAD_MAX / 2 && isOpen(socket)) {
                try {
                    socket.getOutputStream().write('G');
                } catch (IOException e) {
                    break;
                }
                sent++;
            }
            assertTrue(sent < HEAD_MAX / 2, "a head that never ends goes on");
        }
        // Not before the timeout since it was accepted, which is after it was requested.
        assertTrue(System.nanoTime() - beginNs >= longest.toNanos());
    }

    /** Of a response larger than what kernels keep, to one who takes it so slowly that it would last for twice the time. */
    @Test
    void aConnectionEndsInItsTimeThoughItsAnswerIsNotTaken() throws Exception {
        String label = "x".repeat(1_000);
        int port = Endpoint.start(List.of(reader -> {
            for (int i = 0; i < 20_000; i++) {
                reader.number(Series.DB_IDLE, label + i, i);
            }
        }), 0, Duration.ofSeconds(2)).port();
        try (Socket slow = new Socket()) {
            slow.setReceiveBufferSize(4 * 1024);
            slow.setSoTimeout(PATIENCE_MS);
            slow.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
            slow.getOutputStream().write(("GET /json HTTP/1.1\r\n" + HOST).getBytes(StandardCharsets.US_ASCII));
            assertEquals("HTTP/1.1 404 Not Found", status(ask(port, "GET /no HTTP/1.1\r\n" + HOST)), "others are answered");
            assertTrue(readSlowly(slow.getInputStream()) < 20_000_000, "all of it has come");
        }
    }

    @Test
    void aHeadThatIsTooLongIsRefused() throws Exception {
        int port = Endpoint.start(List.of(), 0).port();
        String begin = "GET / HTTP/1.1\r\nX: ";
        String longest = begin + "x".repeat(HEAD_MAX - begin.length() - HOST.length() - 2) + "\r\n" + HOST;
        assertEquals(HEAD_MAX, longest.length());
        assertEquals("HTTP/1.1 200 OK", status(ask(port, longest)));
        String tooLong = longest.replace("X: ", "X: x");
        String answer = ask(port, tooLong);
        assertEquals("HTTP/1.1 431 Request Header Fields Too Large", status(answer));
        assertEquals(1, answer.split("HTTP/1.1 ", -1).length - 1, "one status: " + answer);
        assertEquals(answer, ask(port, tooLong + "x".repeat(200_000)), "who sends a lot more is told as well");
    }

    @Test
    void whatIsNoRequestIsReportedSo() throws Exception {
        int port = Endpoint.start(List.of(), 0).port();
        for (String head : List.of("hello", "GET /", "GET / HTTP/2", "GET / HTTP/1.1\r\nHost", "GET / HTTP/1.1\r\nHost : localhost",
                "GET / HTTP/1.1\r\nX: 1\nHost: localhost", "GET / HTTP/1.1\r\n Host: localhost")) {
            assertEquals("HTTP/1.1 400 Bad Request", status(ask(port, head + "\r\n\r\n")), head);
        }
        assertEquals("HTTP/1.1 403 Forbidden", status(ask(port, "GET / HTTP/1.1\r\nHost: evil.example\r\n" + HOST)));
        assertEquals("HTTP/1.1 404 Not Found", status(ask(port, "GET http://evil.example/json HTTP/1.1\r\n" + HOST)));
        String head = ask(port, "HEAD /json?x=1 HTTP/1.1\r\n" + HOST);
        assertEquals("HTTP/1.1 200 OK", status(head));
        assertTrue(head.endsWith("\r\n\r\n") && !head.contains("Content-Length: 0"), head);
    }

    /** If this fails, an endpoint whose source failed once never responds again. */
    @Test
    void whatFailsOnceIsNoEnd() throws Exception {
        AtomicInteger asked = new AtomicInteger();
        int port = Endpoint.start(List.of(reader -> {
            if (asked.getAndIncrement() == 0) {
                throw new AssertionError("planted");
            }
        }), 0).port();
        assertEquals("", ask(port, "GET / HTTP/1.1\r\n" + HOST));
        assertEquals("HTTP/1.1 200 OK", status(ask(port, "GET / HTTP/1.1\r\n" + HOST)));
    }

    /** If this fails, a port or a connection is kept by an endpoint that was closed. */
    @Test
    void whatIsClosedIsGone() throws Exception {
        Endpoint first = Endpoint.start(List.of(), 0, HOUR);
        try (Socket silent = connect(first.port())) {
            assertEquals("HTTP/1.1 200 OK", status(ask(first.port(), "GET / HTTP/1.1\r\n" + HOST)));
            int port = first.port();
            first.close();
            try (Endpoint second = Endpoint.start(List.of(), port)) {
                assertEquals("HTTP/1.1 200 OK", status(ask(second.port(), "GET / HTTP/1.1\r\n" + HOST)));
            }
            assertTrue(isClosed(silent));
        }
    }

    private static Socket connect(int port) throws IOException {
        Socket socket = new Socket(InetAddress.getLoopbackAddress(), port);
        socket.setSoTimeout(PATIENCE_MS);
        return socket;
    }

    private static String ask(int port, String request) throws IOException {
        try (Socket socket = connect(port)) {
            socket.getOutputStream().write(request.getBytes(StandardCharsets.US_ASCII));
            return answer(socket);
        }
    }

    private static String answer(Socket socket) throws IOException {
        return new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    }

    private static String status(String answer) {
        return answer.lines().findFirst().orElse("");
    }

    private static boolean isClosed(Socket socket) {
        try {
            return socket.getInputStream().read() < 0;
        } catch (SocketTimeoutException e) {
            return false;
        } catch (IOException e) {
            return true;
        }
    }

    private static boolean isOpen(Socket socket) {
        return !isClosed(socket);
    }

    private static long readSlowly(InputStream in) throws InterruptedException {
        long bytes = 0;
        try {
            for (int n = in.readNBytes(4096).length; n > 0; n = in.readNBytes(4096).length) {
                bytes += n;
                Thread.sleep(1);
            }
        } catch (IOException e) {
            // Broken off: it ended.
        }
        return bytes;
    }
}
