package dev.parallax.vertx;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * What being measured costs an HTTP server: CPU time of the event loop by request, driven by wrk. No test, and not run with
 * them: {@code mvn -pl vertx,vertx45 -am test -Dtest=PlaintextCost}; {@code -Dparallax.vertx.depth=1} is without pipelining.
 *
 * <p>All servers live at the same time, and each is driven for a slice in turn, so what else the host does falls on all
 * alike. Each slice of an arm is compared with that of no metrics in the same round.
 */
class PlaintextCost {
    private static final int DEPTH = Integer.getInteger("parallax.vertx.depth", 16);
    private static final int ROUNDS = Integer.getInteger("parallax.vertx.rounds", 6);
    private static final int SLICE_S = 3;
    private static final List<String> ARMS = List.of("off", "no-op", "ours", "theirs");
    private static final Pattern ANSWERED = Pattern.compile("(\\d+) requests in");

    @TempDir
    private Path folder;

    private record Slice(double cpuNs, double bytes, double requests) {}

    @Test
    void costByArm() throws Exception {
        Path script = folder.resolve("pipeline.lua");
        Files.writeString(script, "local all\ninit = function() local one = {} for i = 1, " + DEPTH
                + " do one[i] = wrk.format(nil, '/plaintext') end all = table.concat(one) end\n"
                + "request = function() return all end\n");
        Map<String, Server> servers = new LinkedHashMap<>();
        try {
            for (String arm : ARMS) {
                servers.put(arm, new Server(arm));
            }
            for (Server server : servers.values()) {
                server.slice(script, 4 * SLICE_S);
            }
            Map<String, List<Slice>> slices = new LinkedHashMap<>();
            ARMS.forEach(arm -> slices.put(arm, new ArrayList<>()));
            for (int round = 0; round < ROUNDS; round++) {
                List<String> order = new ArrayList<>(ARMS);
                Collections.rotate(order, round);
                if (round % 2 == 1) {
                    Collections.reverse(order);
                }
                for (String arm : order) {
                    slices.get(arm).add(servers.get(arm).slice(script, SLICE_S));
                }
            }
            print(slices);
        } finally {
            for (Server server : servers.values()) {
                server.process.destroy();
            }
        }
    }

    private static void print(Map<String, List<Slice>> slices) {
        System.out.printf(
                "%s, Java %s, depth %d, %d rounds: median (least, most)%n",
                System.getProperty("parallax.vertx.package"), System.getProperty("java.version"), DEPTH, ROUNDS);
        for (String arm : ARMS) {
            List<Double> cpu = new ArrayList<>();
            List<Double> more = new ArrayList<>();
            List<Double> bytes = new ArrayList<>();
            List<Double> rate = new ArrayList<>();
            for (int n = 0; n < ROUNDS; n++) {
                Slice slice = slices.get(arm).get(n);
                cpu.add(slice.cpuNs / slice.requests);
                more.add(cpu.get(n) - slices.get("off").get(n).cpuNs / slices.get("off").get(n).requests);
                bytes.add(slice.bytes / slice.requests);
                rate.add(slice.requests / SLICE_S);
            }
            System.out.printf(
                    "%-6s  CPU ns/request %s  over off %s  bytes/request %s  requests/s %s%n",
                    arm, median(cpu), median(more), median(bytes), median(rate));
        }
    }

    private static String median(List<Double> values) {
        List<Double> sorted = new ArrayList<>(values);
        Collections.sort(sorted);
        int half = sorted.size() / 2;
        double median = sorted.size() % 2 == 1 ? sorted.get(half) : (sorted.get(half - 1) + sorted.get(half)) / 2;
        return String.format("%.0f (%.0f, %.0f)", median, sorted.get(0), sorted.get(sorted.size() - 1));
    }

    /** One arm in a JVM of its own, on one CPU. */
    private static final class Server {
        private final Process process;
        private final BufferedReader says;
        private final int port;

        Server(String arm) throws IOException {
            process = new ProcessBuilder(
                            "taskset", "-c", "0", Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                            "-Xmx512m", "-XX:+UseParallelGC", "-cp", System.getProperty("java.class.path"),
                            "-Dparallax.vertx.package=" + System.getProperty("parallax.vertx.package"),
                            PlaintextServer.class.getName(), arm)
                    .redirectError(ProcessBuilder.Redirect.DISCARD)
                    .start();
            says = new BufferedReader(new InputStreamReader(process.getInputStream()));
            String first = says.readLine();
            while (first != null && !first.matches("\\d+")) {
                first = says.readLine();
            }
            port = Integer.parseInt(first);
        }

        Slice slice(Path script, int seconds) throws Exception {
            double[] before = ask();
            Process wrk = new ProcessBuilder(
                            "taskset", "-c", "1", "wrk", "-t1", "-c64", "-d" + seconds + "s", "-s", script.toString(),
                            "http://localhost:" + port + "/plaintext")
                    .redirectErrorStream(true)
                    .start();
            String said = new String(wrk.getInputStream().readAllBytes());
            Matcher answered = ANSWERED.matcher(said);
            if (wrk.waitFor() != 0 || !answered.find() || said.contains("Non-2xx")) {
                throw new AssertionError(said);
            }
            double[] after = ask();
            return new Slice(after[0] - before[0], after[1] - before[1], Double.parseDouble(answered.group(1)));
        }

        /** CPU time and allocated bytes of the event loop; nothing before its first request. */
        private double[] ask() throws IOException {
            process.getOutputStream().write('\n');
            process.getOutputStream().flush();
            String[] words = says.readLine().split(" ");
            return new double[] {Double.parseDouble(words[0]), Double.parseDouble(words[1])};
        }
    }
}
