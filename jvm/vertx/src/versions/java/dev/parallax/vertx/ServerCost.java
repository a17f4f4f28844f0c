package dev.parallax.vertx;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.function.DoubleBinaryOperator;
import java.util.function.ToDoubleFunction;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Cost of metrics for an HTTP server: CPU time of its event loop per request, under load from {@code parallax drive}.
 * Not part of the tests; run {@code mvn -pl vertx,vertx45 -am test -Dtest=ServerCost}, or {@code
 * -Dtest=ServerCost#fortunes}.
 */
class ServerCost {
    static final String VERSION = System.getProperty("parallax.vertx.version");
    static final String PARALLAX = System.getProperty("parallax.bin", "../../target/release/parallax");
    static final String SERVER_CPU = System.getProperty("parallax.server.cpu", "0");
    static final String LOAD_CPU = System.getProperty("parallax.load.cpu", "1");

    private static final List<String> ARMS =
            List.of(System.getProperty("parallax.arms", "off,no-op,no-op,clock,planted,ours,theirs").split(","));
    private static final int FORKS = Integer.getInteger("parallax.forks", 6);
    private static final int ROUNDS = Integer.getInteger("parallax.rounds", 30);

    /** Rounds of the same length that are not counted; a server has then handled several hundred thousand requests. */
    private static final int WARMING = Integer.getInteger("parallax.warming", 20);

    private static final int PIPELINE = 16;

    @TempDir
    private Path folder;

    @Test
    void plaintextPipelined() throws Exception {
        compare("plaintext", PIPELINE, 0);
    }

    @Test
    void plaintext() throws Exception {
        compare("plaintext", 1, 0);
    }

    @Test
    void fortunes() throws Exception {
        // The client for 5.0, used to compile these tests, opens connections without end on 5.1.
        Assumptions.assumeFalse(VERSION.equals("51"), "there is no PostgreSQL client of Vert.x 5.1");
        try (Postgres postgres = new Postgres()) {
            compare("fortunes", 1, postgres.port);
        }
    }

    /** What an arm took in one fork: ns and bytes per request. */
    private record Taken(double cpuNs, double bytes) {
        static Taken ofQuiet(List<CostArm.Window> windows) {
            List<CostArm.Window> quiet = windows.stream()
                    .sorted(Comparator.comparingDouble(CostArm.Window::cpuNsEach))
                    .limit((windows.size() + 3) / 4)
                    .toList();
            return new Taken(
                    quiet.stream().mapToDouble(CostArm.Window::cpuNsEach).average().orElseThrow(),
                    quiet.stream().mapToDouble(CostArm.Window::bytesEach).average().orElseThrow());
        }
    }

    private void compare(String page, int pipeline, int postgres) throws Exception {
        List<List<Taken>> forks = new ArrayList<>();
        for (int n = 0; n < FORKS; n++) {
            forks.add(fork(page, pipeline, postgres, new Random(n)));
        }
        System.out.printf(
                "%n%s, %s, pipeline %d, Java %s, %d forks of %d rounds: event loop's CPU, ns a request; median (interval)%n",
                "Vert.x " + VERSION, page, pipeline, System.getProperty("java.version"), FORKS, ROUNDS);
        System.out.printf("%-10s %-20s %-20s %-20s %-24s %s%n", "", "all", "over off", "over no-op", "/ off", "bytes");
        for (int n = 0; n < ARMS.size(); n++) {
            int arm = n;
            System.out.printf(
                    "%-10s %-20s %-20s %-20s %-24s %s%n",
                    name(ARMS.get(arm)),
                    spread("%.0f", forks, fork -> fork.get(arm).cpuNs),
                    spread("%+.0f", forks, over("off", arm, (its, base) -> its - base)),
                    spread("%+.0f", forks, over("no-op", arm, (its, base) -> its - base)),
                    spread("%.3f", forks, over("off", arm, (its, base) -> its / base)),
                    spread("%.1f", forks, fork -> fork.get(arm).bytes));
        }
    }

    /** What each arm took, measured in turn with all the others. */
    private List<Taken> fork(String page, int pipeline, int postgres, Random random) throws Exception {
        List<CostArm> arms = new ArrayList<>();
        try {
            for (String arm : ARMS) {
                Path record = Files.createTempDirectory(folder, "load").resolve("record");
                arms.add(new CostArm(name(arm), classPath(arm), page, postgres, record, pipeline));
            }
            for (CostArm arm : arms) {
                arm.start();
            }
            List<List<CostArm.Window>> windows = new ArrayList<>();
            arms.forEach(arm -> windows.add(new ArrayList<>()));
            List<Integer> order = new ArrayList<>(IntStream.range(0, arms.size()).boxed().toList());
            for (int round = -WARMING; round < ROUNDS; round++) {
                Collections.shuffle(order, random);
                for (int arm : order) {
                    CostArm.Window window = arms.get(arm).window();
                    if (round >= 0) {
                        windows.get(arm).add(window);
                    }
                }
            }
            return windows.stream().map(Taken::ofQuiet).toList();
        } finally {
            for (CostArm arm : arms) {
                arm.close();
            }
        }
    }

    private static String name(String arm) {
        return arm.replaceAll("=.*", "");
    }

    private static String classPath(String arm) {
        String ours = System.getProperty("java.class.path");
        return arm.contains("=") ? arm.replaceAll(".*=", "") + File.pathSeparator + ours : ours;
    }

    /** Over all arms of that name, except this one: of two equal arms, each is compared with the other. */
    private static ToDoubleFunction<List<Taken>> over(String name, int arm, DoubleBinaryOperator compared) {
        return fork -> compared.applyAsDouble(
                fork.get(arm).cpuNs,
                IntStream.range(0, ARMS.size())
                        .filter(other -> other != arm && ARMS.get(other).equals(name))
                        .mapToDouble(other -> fork.get(other).cpuNs)
                        .average()
                        .orElse(Double.NaN));
    }

    private static String spread(String format, List<List<Taken>> forks, ToDoubleFunction<List<Taken>> value) {
        double[] sorted = forks.stream().mapToDouble(value).sorted().toArray();
        double median = (sorted[sorted.length / 2] + sorted[(sorted.length - 1) / 2]) / 2;
        int outside = outside(sorted.length);
        double least = sorted[outside];
        double most = sorted[sorted.length - 1 - outside];
        return String.format(format + " (" + format + ", " + format + ")", median, least, most);
    }

    /**
     * How many of these sorted values can be left out on each side so that the rest still contains the population
     * median with 95 % confidence, whatever the distribution: order statistics with a binomial of one half. Zero for
     * five values or fewer, whose range contains it with less.
     */
    private static int outside(int values) {
        // Probability that exactly so many are below the median, and that at most as many are.
        double exactly = Math.pow(0.5, values);
        double atMost = exactly;
        int outside = 0;
        while (true) {
            exactly *= (values - outside) / (outside + 1.0);
            atMost += exactly;
            if (2 * atMost > 0.05) {
                return outside;
            }
            outside++;
        }
    }
}
