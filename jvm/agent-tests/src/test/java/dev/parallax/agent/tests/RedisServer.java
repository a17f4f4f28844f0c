package dev.parallax.agent.tests;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A separate Redis on loopback that persists nothing. */
final class RedisServer implements AutoCloseable {
    private static final long LONGEST_S = 30;

    private final Process process;
    private final int port;
    private int asked;

    RedisServer(Path folder) throws IOException, InterruptedException {
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = free.getLocalPort();
        }
        Path log = folder.resolve("redis.log");
        process = new ProcessBuilder(
                        "redis-server", "--port", Integer.toString(port), "--bind", "127.0.0.1",
                        "--dir", folder.toString(), "--save", "", "--appendonly", "no")
                .redirectErrorStream(true)
                .redirectOutput(log.toFile())
                .start();
        long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(LONGEST_S);
        while (!Files.readString(log).contains("Ready to accept connections")) {
            if (System.nanoTime() - endNs > 0 || !process.isAlive()) {
                close();
                throw new AssertionError("redis-server does not start: " + Files.readString(log));
            }
            Thread.sleep(10);
        }
    }

    int port() {
        return port;
    }

    /** How often it did a command. */
    long calls(String command) throws IOException {
        return number("commandstats", "cmdstat_" + command + ":calls=");
    }

    /** How many connections it accepted, without those that asked for this number. */
    long connections() throws IOException {
        return number("stats", "total_connections_received:") - asked;
    }

    private long number(String section, String before) throws IOException {
        String info = info(section);
        Matcher line = Pattern.compile("(?m)^" + before + "([0-9]+)").matcher(info);
        if (!line.find()) {
            throw new AssertionError("no " + before + " in " + info);
        }
        return Long.parseLong(line.group(1));
    }

    private String info(String section) throws IOException {
        asked++;
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            socket.getOutputStream()
                    .write(("INFO " + section + "\r\nQUIT\r\n").getBytes(StandardCharsets.US_ASCII));
            return new String(socket.getInputStream().readAllBytes(), StandardCharsets.US_ASCII);
        }
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }
}
