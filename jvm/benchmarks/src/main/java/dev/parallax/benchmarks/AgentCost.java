package dev.parallax.benchmarks;

import com.sun.net.httpserver.HttpServer;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The agent's cost for a JVM that makes requests with HttpClient 5, and for an idle one. Run with {@code java -cp
 * benchmarks.jar dev.parallax.benchmarks.AgentCost parallax-agent.jar}.
 *
 * <p>All arms run at the same time and work in turn, in short windows with the same number of requests, so that other
 * work of the host affects all alike. The figure is CPU time of the process, including its collector and compiler: the
 * median of an arm's windows, and the quietest tenth. The arm without an agent exists twice: the difference between the
 * two is the resolution. Idle cost is measured for all arms at the same time.
 */
public final class AgentCost {
    private static final int ROUNDS = Integer.getInteger("rounds", 150);
    private static final int WARM_UP = Integer.getInteger("warm-up", 20_000);
    private static final int REQUESTS = Integer.getInteger("requests", 1_000);
    private static final int IDLE_MS = Integer.getInteger("idle-ms", 20_000);

    private static final double QUIETEST = 0.1;

    private AgentCost() {}

    private static final class Arm implements AutoCloseable {
        final List<Double> requestNs = new ArrayList<>();
        double idlePercent;
        private final Process process;
        private final BufferedReader answers;
        private final PrintStream orders;

        Arm(String agent, String url) throws IOException {
            List<String> command = new ArrayList<>();
            command.add(new File(System.getProperty("java.home"), "bin/java").toString());
            command.add("-Xmx256m");
            if (agent != null) {
                command.add("-javaagent:" + agent);
            }
            command.addAll(List.of("-cp", System.getProperty("java.class.path"), AgentCostClient.class.getName(), url));
            process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
            answers = new BufferedReader(new InputStreamReader(process.getInputStream()));
            orders = new PrintStream(process.getOutputStream(), true);
        }

        void begins(String order) {
            orders.println(order);
        }

        /** CPU time used, in nanoseconds. */
        double ends() throws IOException {
            String answer = answers.readLine();
            if (answer == null) {
                throw new IOException("an arm has ended");
            }
            return Long.parseLong(answer);
        }

        double does(String order) throws IOException {
            begins(order);
            return ends();
        }

        @Override
        public void close() {
            process.destroy();
        }
    }

    public static void main(String[] arguments) throws IOException {
        // Head and body of a response are sent without delay.
        System.setProperty("sun.net.httpserver.nodelay", "true");
        String agent = arguments[0] + "=log=off,";
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", exchange -> {
            try (exchange) {
                exchange.sendResponseHeaders(200, 2);
                exchange.getResponseBody().write(new byte[] {'o', 'k'});
            }
        });
        server.start();
        String url = "http://localhost:" + server.getAddress().getPort() + "/";
        Map<String, Arm> arms = new LinkedHashMap<>();
        try {
            arms.put("without", new Arm(null, url));
            arms.put("without, again", new Arm(null, url));
            arms.put("pools alone (hiccup=off)", new Arm(agent + "hiccup=off", url));
            arms.put("meter alone (instrument=none,causes=off)", new Arm(agent + "instrument=none,causes=off", url));
            arms.put("meter with causes (instrument=none)", new Arm(agent + "instrument=none", url));
            arms.put("as it is", new Arm(agent + "interval=1s", url));
            measure(new ArrayList<>(arms.values()));
            print(arms);
        } finally {
            arms.values().forEach(Arm::close);
            server.stop(0);
        }
    }

    private static void measure(List<Arm> arms) throws IOException {
        for (Arm arm : arms) {
            arm.does("requests " + WARM_UP);
        }
        for (int round = 0; round < ROUNDS; round++) {
            for (int i = 0; i < arms.size(); i++) {
                // Each round begins with another one.
                Arm arm = arms.get((i + round) % arms.size());
                arm.requestNs.add(arm.does("requests " + REQUESTS) / REQUESTS);
            }
        }
        arms.forEach(arm -> arm.begins("idle " + IDLE_MS));
        for (Arm arm : arms) {
            arm.idlePercent = arm.ends() / (IDLE_MS * 1e4);
        }
    }

    private static void print(Map<String, Arm> arms) {
        List<Double> floor = arms.values().iterator().next().requestNs;
        System.out.printf(
                "%d windows of %d requests each; CPU time in us a request%n%-42s %8s %8s %9s %8s %16s%n",
                ROUNDS, REQUESTS, "", "median", "ratio", "quietest", "ratio", "idle, % of a core");
        arms.forEach((name, arm) -> System.out.printf(
                "%-42s %8.1f %8.3f %9.1f %8.3f %16.2f%n",
                name,
                at(arm.requestNs, 0.5) / 1e3,
                at(arm.requestNs, 0.5) / at(floor, 0.5),
                at(arm.requestNs, QUIETEST) / 1e3,
                at(arm.requestNs, QUIETEST) / at(floor, QUIETEST),
                arm.idlePercent));
    }

    private static double at(List<Double> values, double share) {
        return values.stream().sorted().toList().get((int) (share * values.size()));
    }
}
