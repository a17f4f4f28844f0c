package dev.parallax.vertx;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Path;
import java.util.List;

/**
 * A {@link CostServer} in its own JVM on one CPU, and a load generator for it on another, which is stopped between
 * windows.
 */
final class CostArm implements AutoCloseable {
    /** Time for outstanding responses to drain and for caches to warm up after the load resumes. */
    private static final int SETTLING_MS = 40;

    private static final int WINDOW_MS = 160;
    private static final int REQUESTS_MIN = 100;

    private final Process server;
    private final BufferedReader stdout;
    private final ChildProcess load;

    /** What one window took. */
    record Window(double cpuNs, double bytes, double requests) {
        double cpuNsEach() {
            return cpuNs / requests;
        }

        double bytesEach() {
            return bytes / requests;
        }
    }

    /**
     * @param classPath of the server
     * @param folder for the load's record
     * @param pipeline maximum outstanding requests per connection
     */
    CostArm(String arm, String classPath, String page, int postgres, Path folder, int pipeline) throws IOException {
        server = new ProcessBuilder(
                        "taskset", "-c", ServerCost.SERVER_CPU, Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-Xms256m", "-Xmx256m", "-XX:+UseParallelGC", "-cp", classPath,
                        "-Dparallax.vertx.version=" + ServerCost.VERSION,
                        CostServer.class.getName(), arm, page, "" + postgres)
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        stdout = new BufferedReader(new InputStreamReader(server.getInputStream()));
        String port = stdout.readLine();
        while (port != null && !port.matches("\\d+")) {
            port = stdout.readLine();
        }
        if (port == null) {
            throw new IOException("the server of " + arm + " did not start");
        }
        load = new ChildProcess("KILL", List.of(
                "taskset", "-c", ServerCost.LOAD_CPU, ServerCost.PARALLAX, "drive", "http://127.0.0.1:" + port + "/" + page,
                "-c", page.equals("fortunes") ? "16" : "64", "-w", "1", "--pipeline", "" + pipeline, "-d", "1h",
                "--timeout", "off", "--stamps", "read", "--quiet", "-o", folder.toString()));
        load.signal("STOP");
    }

    /** Waits until the load runs, without counting it. */
    void start() throws IOException, InterruptedException {
        load.signal("CONT");
        long answered = ask()[2];
        for (int trial = 0; ask()[2] < answered + 1_000; trial++) {
            if (trial == 200) {
                load.close();
                throw new IOException("no thousand requests within " + trial * WINDOW_MS + " ms; the load stdout: " + load.output());
            }
            Thread.sleep(WINDOW_MS);
        }
        load.signal("STOP");
    }

    /** A window in which this load had the host for a while: a handful of requests would say nothing. */
    Window window() throws IOException, InterruptedException {
        for (int trial = 0; trial < 100; trial++) {
            load.signal("CONT");
            Thread.sleep(SETTLING_MS);
            long[] before = ask();
            Thread.sleep(WINDOW_MS);
            long[] after = ask();
            load.signal("STOP");
            if (after[2] - before[2] >= REQUESTS_MIN) {
                return new Window(after[0] - before[0], after[1] - before[1], after[2] - before[2]);
            }
        }
        throw new IOException("no window had " + REQUESTS_MIN + " responses: the host is too busy");
    }

    /** CPU time (ns) and allocated bytes of the event loop, and the number of responses. */
    private long[] ask() throws IOException {
        server.getOutputStream().write('\n');
        server.getOutputStream().flush();
        String[] words = stdout.readLine().split(" ");
        return new long[] {Long.parseLong(words[0]), Long.parseLong(words[1]), Long.parseLong(words[2])};
    }

    @Override
    public void close() throws IOException {
        load.close();
        server.destroy();
    }
}
