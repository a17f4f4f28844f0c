package dev.parallax.agent.tests;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInfo;
import org.junit.jupiter.api.io.TempDir;

/**
 * Something known happens, and the hiccups name it. If one of these fails, users look for a cause in the wrong place.
 *
 * <p>This host also runs other programs, which are reported as such and are not part of the fault: so 95 % of all
 * hiccup time must have a cause, and 95 % of the fault's own time the right one. If other programs ran at that moment,
 * both are causes of the same time, and one of them is reported. With hogs on its CPU, 5 to 8 % have no cause in a third
 * of the trials (Linux 6.18 in a virtual machine). So one trial of five must succeed.
 */
@Tag("alone")
class FaultTest {
    private static final double SHARE = 0.95;
    private static final long STOP_MS = 300;
    private static final int STOPS = 4;
    private static final long HOGGED_MS = 2_000;
    private static final long LONG_PAUSE_NS = 20_000_000;

    private static final Pattern HICCUP =
            Pattern.compile("\"at_ns\":([0-9]+),\"kind\":\"hiccup\",\"text\":\"hiccup of .*\"causes_ns\":\\{([^}]*)}");
    private static final Pattern PART = Pattern.compile("\"([a-z_]+)\":([0-9]+)");

    private static final boolean HAS_VIRTUAL_THREADS = Runtime.version().feature() >= 21;

    /** A host on which none of this many trials is undisturbed is not suitable for measuring. */
    private static final int TRIALS = 5;

    @TempDir
    private Path temporary;

    /** Of the trial. */
    private Path folder;

    private TestInfo test;

    @BeforeEach
    void remember(TestInfo test) {
        this.test = test;
    }

    private interface Trial {
        void run() throws Exception;
    }

    private void inTrials(Trial trial) throws Exception {
        for (int n = 1; ; n++) {
            folder = Files.createDirectory(temporary.resolve("trial" + n));
            try {
                trial.run();
                Trials.report(n, TRIALS, test);
                return;
            } catch (AssertionError e) {
                if (n == TRIALS) {
                    Trials.report(n, TRIALS, test);
                    throw e;
                }
                System.out.println("trial " + n + ": " + e.getMessage());
            }
        }
    }

    /**
     * If other processes have the CPU while the JVM is stalled, both are causes of the same time and one is reported:
     * then there is another trial. That no time is left out must hold in each.
     */
    @Test
    void aCollectionIsASafepoint() throws Exception {
        for (int trial = 1; ; trial++) {
            folder = Files.createDirectory(temporary.resolve("trial" + trial));
            Path log = folder.resolve("safepoints");
            run(jvm("-XX:+UseSerialGC", "-Xmx512m", "-Xlog:safepoint:file=" + log), ",control=on", "collect");
            List<Double> logged = longCollectionsMs(Files.readAllLines(log));
            // The time before the next wake-up was due is not part of the hiccup.
            double truth = logged.stream().mapToDouble(ms -> ms - 1).sum();
            TreeMap<String, Double> parts = parts();
            double others = parts.getOrDefault("run_queue", 0.0) + parts.getOrDefault("stolen", 0.0);
            double reported = parts.getOrDefault("safepoint", 0.0);
            assertTrue(truth > 0 && reported + others >= SHARE * truth, truth + " ms, reported " + parts);
            if (isExplained(parts) && reported >= SHARE * truth) {
                // By these `parallax explain` finds the requests that a collection held up.
                long pauses = longCollections(Files.readAllLines(folder.resolve("record/events.ndjson")));
                assertTrue(pauses >= logged.size(), logged + " were logged, reported " + pauses);
                Trials.report(trial, TRIALS, test);
                return;
            }
            assertTrue(trial < TRIALS, "in each of " + trial + " trials others had the CPU: " + parts);
        }
    }

    private static List<Double> longCollectionsMs(List<String> log) {
        Pattern total = Pattern.compile("Total: +([0-9]+) ns");
        // The agent itself stops the JVM to change classes, before there is a meter.
        return log.stream()
                .filter(line -> line.contains("Collect"))
                .map(total::matcher)
                .filter(found -> found.find() && Long.parseLong(found.group(1)) >= LONG_PAUSE_NS)
                .map(found -> Long.parseLong(found.group(1)) / 1e6)
                .toList();
    }

    /** Those that are in the record as pauses, with the collector's cause. */
    private static long longCollections(List<String> events) {
        Pattern pause = Pattern.compile(
                "\"pause\":\\{\"begin_ns\":([0-9]+),\"end_ns\":([0-9]+),\"cause\":\"[^\"]*(System.gc|Allocation Failure)");
        return events.stream()
                .map(pause::matcher)
                .filter(found -> found.find()
                        && Long.parseLong(found.group(2)) - Long.parseLong(found.group(1)) >= SHARE * LONG_PAUSE_NS)
                .count();
    }

    @Test
    void aStoppedProcessIsStopped() throws Exception {
        inTrials(this::aStoppedProcessIsStoppedOnce);
    }

    private void aStoppedProcessIsStoppedOnce() throws Exception {
        AgentJvm jvm = jvm("-Xmx64m").start(options(",control=on"), FaultApplication.class, "wait", "4000");
        jvm.until("ready");
        double leastMs = 0;
        for (int n = 0; n < STOPS; n++) {
            signal("STOP", jvm.pid());
            long stoppedNs = System.nanoTime();
            Thread.sleep(STOP_MS);
            leastMs += (System.nanoTime() - stoppedNs) / 1e6;
            signal("CONT", jvm.pid());
            Thread.sleep(STOP_MS);
        }
        jvm.end();
        TreeMap<String, Double> parts = parts();
        explained(parts);
        assertTrue(parts.getOrDefault("stopped", 0.0) >= SHARE * leastMs, leastMs + " ms, reported " + parts);
    }

    @Test
    void othersOnTheSameCpuAreTheRunQueue() throws Exception {
        inTrials(this::othersOnTheSameCpuAreTheRunQueueOnce);
    }

    private void othersOnTheSameCpuAreTheRunQueueOnce() throws Exception {
        List<Process> hogs = new ArrayList<>();
        AgentJvm jvm = jvm("-Xmx256m", "-Xmn128m", "-XX:+UseSerialGC").under("taskset", "-c", "0")
                .start(options(""), FaultApplication.class, "burn", Long.toString(HOGGED_MS));
        try {
            // A JVM that starts waits for itself as well, for whom of its threads has no CPU: that is not what is planted.
            jvm.until("ready");
            for (int i = 0; i < 4; i++) {
                hogs.add(new ProcessBuilder("taskset", "-c", "0", "sh", "-c", "while :; do :; done").start());
            }
            Thread.sleep(HOGGED_MS);
        } finally {
            hogs.forEach(Process::destroyForcibly);
            jvm.end();
        }
        TreeMap<String, Double> parts = parts();
        explained(parts);
        double all = sum(parts);
        // The hypervisor takes CPUs from all, the hogs included; what it took is reported by it.
        double notTheirs = parts.getOrDefault("safepoint", 0.0) + parts.getOrDefault("timer", 0.0);
        double others = parts.getOrDefault("run_queue", 0.0) + parts.getOrDefault("stolen", 0.0);
        assertTrue(all > 200 && others >= SHARE * (all - notTheirs), parts.toString());
        assertTrue(parts.getOrDefault("run_queue", 0.0) >= 0.5 * all, parts.toString());
    }

    @Test
    void aQuotaIsThrottling() throws Exception {
        inTrials(this::aQuotaIsThrottlingOnce);
    }

    /**
     * On one CPU, so that the kernel's sum over CPUs is the time that the group was throttled, whatever else runs
     * here.
     */
    private void aQuotaIsThrottlingOnce() throws Exception {
        try (Quota quota = new Quota()) {
            AgentJvm jvm = jvm("-Xmx64m", "-XX:+UseSerialGC").under(quota.command()).under("taskset", "-c", "0")
                    .start(options(""), FaultApplication.class, "burn", Long.toString(HOGGED_MS));
            jvm.until("ready");
            quota.set(20);
            jvm.until("over");
            quota.lift();
            double truth = quota.throttledNs() / 1e6;
            jvm.end();
            TreeMap<String, Double> parts = parts();
            explained(parts);
            double reported = parts.getOrDefault("throttled", 0.0);
            // A safepoint that is throttled half way is reported as one.
            double both = reported + parts.getOrDefault("safepoint", 0.0);
            assertTrue(truth > HOGGED_MS / 2.0, truth + " ms were throttled");
            assertTrue(reported <= truth * 1.01 && both >= SHARE * truth, truth + " ms, reported " + parts);
        }
    }

    /** The collector cannot keep up, so who wants memory waits for it; the meter does, too. */
    @Test
    void aWaitForMemoryIsAnAllocation() throws Exception {
        inTrials(this::aWaitForMemoryIsAnAllocationOnce);
    }

    private void aWaitForMemoryIsAnAllocationOnce() throws Exception {
        Path log = folder.resolve("stalls");
        AgentJvm.Ended ended = run(jvm("-XX:+UseZGC", "-Xmx64m", "-Xlog:gc:file=" + log), ",control=on", "fill", "3000");
        assertFalse(ended.err().contains("OutOfMemoryError"), "memory gave out, which is another fault: " + ended.err());
        TreeMap<String, Double> parts = parts();
        explained(parts);
        double truth = meterStallsMs(Files.readAllLines(log));
        double reported = parts.getOrDefault("allocation", 0.0);
        // What stopped the JVM, or had its CPUs, while the meter waited is a cause of the same time.
        double others = Stream.of("safepoint", "run_queue", "stolen").mapToDouble(name -> parts.getOrDefault(name, 0.0)).sum();
        assertTrue(truth > 0 && reported + others >= SHARE * truth, truth + " ms, reported " + parts);
        assertTrue(reported >= 0.5 * sum(parts), parts.toString());
    }

    /** Of the collector's own account those of the meter that are long enough to be reported. */
    private static double meterStallsMs(List<String> log) {
        Pattern stall = Pattern.compile("Allocation Stall \\(parallax-hiccup\\) ([0-9.]+)ms");
        return log.stream()
                .map(stall::matcher)
                .filter(Matcher::find)
                .mapToDouble(found -> Double.parseDouble(found.group(1)) - 1)
                .filter(ms -> ms > 0)
                .sum();
    }

    @Test
    void whereThereAreNoVirtualThreadsNothingIsReportedOfThem() throws Exception {
        Assumptions.assumeFalse(HAS_VIRTUAL_THREADS, "this JVM has virtual threads");
        folder = temporary;
        run(jvm(), "", "wait", "300");
        assertTrue(Logs.sums(folder.resolve("record"), "jvm.canary").isEmpty());
    }

    @Test
    void virtualThreadsThatKeepTheirCarriersArePinned() throws Exception {
        Assumptions.assumeTrue(HAS_VIRTUAL_THREADS, "this JVM has no virtual threads");
        inTrials(this::virtualThreadsThatKeepTheirCarriersArePinnedOnce);
    }

    private void virtualThreadsThatKeepTheirCarriersArePinnedOnce() throws Exception {
        run(
                jvm("-Djdk.virtualThreadScheduler.parallelism=2", "-Djdk.virtualThreadScheduler.maxPoolSize=2"), "", "pin");
        // The longest of its hiccups is the fault; what the JVM or the host had stopped in the meantime was not the carriers'.
        double longest = 0;
        String text = "";
        for (String line : Files.readAllLines(folder.resolve("record/events.ndjson"))) {
            double ms = value(line, "virtual threads' hiccup of ");
            if (ms > longest) {
                longest = ms;
                text = line;
            }
        }
        assertTrue(longest > 250 && value(text, "pinned ") > 0, text);
        assertTrue(value(text, "carriers ") <= (1 - SHARE) * longest, text);
    }

    private static double value(String line, String name) {
        Matcher number = Pattern.compile(Pattern.quote(name) + "([0-9.]+) ms").matcher(line);
        return number.find() ? Double.parseDouble(number.group(1)) : 0;
    }

    private AgentJvm jvm(String... options) {
        return new AgentJvm(folder).with(options);
    }

    private String options(String more) {
        return "log=off,out=" + folder.resolve("record") + more;
    }

    private AgentJvm.Ended run(AgentJvm jvm, String more, String... arguments) throws Exception {
        return jvm.run(options(more), FaultApplication.class, arguments);
    }

    /** Hiccup time by cause since the application was ready, in milliseconds: a start has stalls of its own. */
    private TreeMap<String, Double> parts() throws IOException {
        String run = Files.readString(folder.resolve("record/run.json"));
        long startedNs = number(run, "\"started_monotonic_ns\":");
        long readyNs = number(Files.readString(folder.resolve("out")), "ready_ns=");
        TreeMap<String, Double> parts = new TreeMap<>();
        for (String line : Files.readAllLines(folder.resolve("record/events.ndjson"))) {
            Matcher hiccup = HICCUP.matcher(line);
            if (hiccup.find() && startedNs + Long.parseLong(hiccup.group(1)) >= readyNs) {
                Matcher part = PART.matcher(hiccup.group(2));
                while (part.find()) {
                    parts.merge(part.group(1), Long.parseLong(part.group(2)) / 1e6, Double::sum);
                }
            }
        }
        return parts;
    }

    private static long number(String text, String name) {
        Matcher number = Pattern.compile(Pattern.quote(name) + "([0-9]+)").matcher(text);
        assertTrue(number.find(), "no " + name + " in " + text);
        return Long.parseLong(number.group(1));
    }

    private static double sum(Map<String, Double> parts) {
        return parts.values().stream().mapToDouble(ms -> ms).sum();
    }

    private static void explained(TreeMap<String, Double> parts) {
        assertTrue(isExplained(parts), "unexplained is too much of " + parts);
    }

    private static boolean isExplained(TreeMap<String, Double> parts) {
        return parts.getOrDefault("unexplained", 0.0) <= (1 - SHARE) * sum(parts);
    }

    private static void signal(String name, long pid) throws Exception {
        if (new ProcessBuilder("kill", "-" + name, Long.toString(pid)).start().waitFor() != 0) {
            throw new AssertionError("cannot send SIG" + name);
        }
    }

    /** A control group with a quota, of either version. */
    private static final class Quota implements AutoCloseable {
        private static final int PERIOD_US = 100_000;

        private final boolean isFirst = Files.isDirectory(Path.of("/sys/fs/cgroup/cpu"));
        private final Path group = Path.of("/sys/fs/cgroup", isFirst ? "cpu" : "", "parallax-agent-test-"
                + ProcessHandle.current().pid());

        Quota() throws IOException {
            Files.createDirectory(group);
        }

        void set(int percent) throws IOException {
            limit(Integer.toString(PERIOD_US * percent / 100));
        }

        void lift() throws IOException {
            limit(isFirst ? "-1" : "max");
        }

        private void limit(String us) throws IOException {
            if (isFirst) {
                Files.writeString(group.resolve("cpu.cfs_period_us"), Integer.toString(PERIOD_US));
                Files.writeString(group.resolve("cpu.cfs_quota_us"), us);
            } else {
                Files.writeString(group.resolve("cpu.max"), us + " " + PERIOD_US);
            }
        }

        String[] command() {
            return new String[] {"sh", "-c", "echo $$ > " + group.resolve("cgroup.procs") + " && exec \"$@\"", "sh"};
        }

        long throttledNs() throws IOException {
            for (String line : Files.readAllLines(group.resolve("cpu.stat"))) {
                String[] words = line.split(" ");
                if (words[0].equals("throttled_time")) {
                    return Long.parseLong(words[1]);
                }
                if (words[0].equals("throttled_usec")) {
                    return Long.parseLong(words[1]) * 1_000;
                }
            }
            throw new AssertionError("the group counts no throttling");
        }

        @Override
        public void close() throws IOException {
            Files.delete(group);
        }
    }
}
