package dev.parallax.agent.tests;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.api.io.TempDir;

/**
 * A loop that times itself while the JVM is stalled between its operations, as a collector does: its own maximum does
 * not show that. If this fails, ours does not either, or not as much as an external client sees.
 *
 * <p>{@code -Dloop.seconds=60} is for a quiet machine: percentiles must be known from outside, and nothing else may run
 * there. It needs {@code cargo build --release}.
 */
@Tag("alone")
class LoopTest {
    private static final int SECONDS = Integer.getInteger("loop.seconds", 60);
    private static final int COMPARED_SECONDS = 2;

    /** Other programs on a host are visible from outside, too, and are not pauses of the JVM. */
    private static final int TRIALS = 3;

    private static final double WITHIN = 0.1;
    private static final double BUCKET = 0.01;

    /**
     * External requests that waited are served one after another; the correction does not model queueing. Both give the
     * same result as long as the first one that waited decides: so one connection, because a server takes several in
     * any order, and a rate at which the server works a sixth of the time.
     */
    private static final String[] LOAD = {"-r", "8", "-c", "1"};

    /**
     * What the application holds makes a pause much longer than the work. The operation that is in progress when the
     * JVM must stop is finished first, and its response then waits: the loop, which has its timestamp by then, does not
     * see that. The young generation is larger than what the disturber catches up after a pause, so that no pause
     * follows immediately.
     */
    private static final String[] HEAP = {"-XX:+UseSerialGC", "-Xms2g", "-Xmx2g", "-Xmn800m"};
    private static final String DISTURBED =
            "log=off,disturb=fragmentation,disturb-rate=150MB,disturb-share=25%,disturb-for=600s";

    /** A percentile that rests on fewer pauses is theirs alone. */
    private static final int LEAST_PAUSES = 10;

    private static final Path PARALLAX =
            Path.of(System.getProperty("parallax.bin", "../../target/release/parallax")).toAbsolutePath();

    @TempDir
    private Path folder;

    /** What one arm showed, times in milliseconds. */
    private record Seen(double naiveMaxMs, double pauseMs, double pauses, double p99Ms, double maxMs,
            double fromOutsideP99Ms, double fromOutsideMaxMs) {}

    @Test
    @EnabledIfSystemProperty(named = "loop.seconds", matches = "[0-9]+", disabledReason = "long: -Dloop.seconds=60")
    void whatALoopDoesNotSeeIsSeenAsFromOutside() throws Exception {
        for (int trial = 1; ; trial++) {
            Seen base = run("base" + trial, COMPARED_SECONDS, null);
            Seen garbage = run("garbage" + trial, COMPARED_SECONDS, null, "garbage");
            Seen disturbed = run("disturbed" + trial, SECONDS, DISTURBED);
            String all = "trial " + trial + ": " + base + "\n" + garbage + "\n" + disturbed;
            System.out.println(all);
            for (Seen seen : List.of(base, garbage, disturbed)) {
                assertTrue(seen.maxMs <= (seen.naiveMaxMs + seen.pauseMs) * (1 + BUCKET), "longer than it was: " + all);
            }
            assertTrue(disturbed.pauses >= LEAST_PAUSES, "too little was disturbed: " + all);
            assertTrue(disturbed.maxMs >= disturbed.pauseMs * (1 - BUCKET), "the pause is not in it: " + all);
            boolean isStill = disturbed.naiveMaxMs < disturbed.pauseMs / 2;
            boolean agrees = Math.abs(disturbed.p99Ms / disturbed.fromOutsideP99Ms - 1) <= WITHIN
                    && Math.abs(disturbed.maxMs / disturbed.fromOutsideMaxMs - 1) <= WITHIN;
            if (isStill && agrees) {
                return;
            }
            assertTrue(trial < TRIALS, all);
        }
    }

    private Seen run(String arm, int seconds, String agent, String... arguments) throws Exception {
        Path own = Files.createDirectory(folder.resolve(arm));
        AgentJvm jvm = new AgentJvm(own)
                .with(HEAP)
                .classPath(AgentJvm.measuredPath())
                .start(agent, LoopApplication.class, arguments);
        try {
            jvm.until("ready");
            String url = "http://127.0.0.1:" + Files.readAllLines(own.resolve("out")).get(0) + "/";
            get(url + "begin");
            JsonNode response = drive(own, url + "work", seconds);
            Map<String, Double> reported = get(url + "end").lines()
                    .map(line -> line.split("="))
                    .collect(Collectors.toMap(pair -> pair[0], pair -> Double.parseDouble(pair[1])));
            double p99Ms = 0;
            for (JsonNode quantile : response.get("quantiles")) {
                if (quantile.get("q").asDouble() == 0.99) {
                    // Unknown for small samples: then it cannot agree with anything.
                    p99Ms = quantile.path("ns").asDouble() / 1e6;
                }
            }
            return new Seen(
                    reported.get("naive_max_ns") / 1e6,
                    reported.get("longest_pause_ns") / 1e6,
                    reported.get("long_pauses"),
                    reported.get("p99_ns") / 1e6,
                    reported.get("max_ns") / 1e6,
                    p99Ms,
                    response.get("max_ns").asDouble() / 1e6);
        } finally {
            jvm.end();
        }
    }

    private JsonNode drive(Path own, String url, int seconds) throws IOException, InterruptedException {
        assertTrue(Files.isExecutable(PARALLAX), PARALLAX + " is not there: cargo build --release, or -Dparallax.bin=");
        Path out = own.resolve("drive");
        List<String> command = new ArrayList<>(List.of(PARALLAX.toString(), "drive", url));
        command.addAll(List.of(LOAD));
        command.addAll(List.of("-d", seconds + "s", "--json", "--quiet"));
        Process drive = new ProcessBuilder(command)
                .directory(own.toFile())
                .redirectOutput(out.toFile())
                .redirectError(own.resolve("drive.err").toFile())
                .start();
        if (!drive.waitFor(seconds + 60L, TimeUnit.SECONDS)) {
            drive.destroyForcibly();
            throw new AssertionError("drive does not end");
        }
        JsonNode response = new ObjectMapper().readTree(out.toFile()).path("results").path("response");
        assertTrue(response.has("quantiles"), Files.readString(own.resolve("drive.err")));
        return response;
    }

    private static String get(String url) throws IOException {
        try (InputStream answer = new URL(url).openStream()) {
            return new String(answer.readAllBytes(), StandardCharsets.US_ASCII);
        }
    }
}
