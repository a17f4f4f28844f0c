package dev.parallax.pauses;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** The clocks compared with the JVM's own log of its safepoints, in a JVM whose pauses are provoked. */
final class ExactnessTest {
    /** Number of JVMs, one of which must sample the late thread: now and then one never does. */
    private static final int LATE_TRIALS = 5;
    private static final boolean LONG = Boolean.getBoolean("long");
    /** Tries to provoke a safepoint; five of six always do, so the long form has 1,000 pauses. */
    private static final int PROVOKED = LONG ? 1_200 : 60;
    private static final long NS_PER_MS = 1_000_000;
    private static final double MOST_OFF = 0.01;

    @TempDir
    private Path directory;

    /** The collectors of HotSpot, as in {@code -XX:+UseSerialGC}. */
    enum Collector { Serial, Parallel, G1, Z, Shenandoah }

    @ParameterizedTest
    @EnumSource(Collector.class)
    @Execution(ExecutionMode.CONCURRENT)
    void counters_in_the_file_are_exact(final Collector collector) throws Exception {
        checkCounters(collector, PauseClock.Way.COUNTERS_FILE);
    }

    /** If the file is hidden, as users do who had stalls because of it, the counters themselves are the same. */
    @ParameterizedTest
    @EnumSource(value = Collector.class, names = "G1")
    @Execution(ExecutionMode.CONCURRENT)
    void counters_that_are_attached_are_exact(final Collector collector) throws Exception {
        checkCounters(collector, PauseClock.Way.COUNTERS_ATTACHED, "-XX:+PerfDisableSharedMem");
    }

    private void checkCounters(final Collector collector, final PauseClock.Way way, final String... options)
        throws Exception {
        final Run run = provoke(collector, way, options);
        final List<Shown> shown = run.shown();
        for (final Shown one : shown) {
            checkReading(one.before, run.log);
            checkReading(one.after, run.log);
            checkOperation(one, run.log);
        }
        final PauseReading first = shown.get(0).before;
        final PauseReading last = shown.get(shown.size() - 1).after;
        final List<SafepointLog.Entry> between = run.log.between(first.begun(), last.begun());
        checkSpread(between);
        final long logNs = between.stream().mapToLong(SafepointLog.Entry::totalNs).sum();
        assertEquals(logNs, last.since(first).pausedNs(), logNs * MOST_OFF, collector + ": paused in all");
    }

    /**
     * To the nanosecond, the time of all safepoints in the log up to this reading; for the last of them, what had been
     * counted by then: all, the time to stop, or nothing yet.
     */
    private static void checkReading(final PauseReading reading, final SafepointLog log) {
        final List<SafepointLog.Entry> before = log.between(0, reading.begun() - 1);
        final SafepointLog.Entry last = log.between(reading.begun() - 1, reading.begun()).get(0);
        final long syncNs = before.stream().mapToLong(SafepointLog.Entry::reachingNs).sum();
        final long totalNs = before.stream().mapToLong(SafepointLog.Entry::totalNs).sum();
        final List<PauseReading> states = List.of(
            new PauseReading(reading.begun(), syncNs + last.reachingNs(), totalNs + last.totalNs() - syncNs - last.reachingNs()),
            new PauseReading(reading.begun(), syncNs + last.reachingNs(), totalNs - syncNs),
            new PauseReading(reading.begun(), syncNs, totalNs - syncNs));
        assertTrue(states.contains(reading), reading + " is none of " + states);
    }

    /** The log's line has the clock's number: what was provoked is in the lines that the clock counted. */
    private static void checkOperation(final Shown one, final SafepointLog log) {
        final String operation = switch (one.way) {
            case "DUMP", "LATE_LOOP", "LATE_COPY" -> "ThreadDump";
            case "REDEFINE" -> "RedefineClasses";
            default -> "";
        };
        final List<SafepointLog.Entry> lines = log.between(one.before.begun(), one.after.begun());
        assertTrue(operation.isEmpty() || lines.stream().anyMatch(line -> line.operation().equals(operation)),
            one + ": " + lines);
    }

    /** That there was something to find: as many as were provoked, shorter and longer than samplers see. */
    private static void checkSpread(final List<SafepointLog.Entry> pauses) {
        assertTrue(pauses.size() >= PROVOKED * 5 / 6, pauses.size() + " pauses");
        assertTrue(pauses.stream().anyMatch(pause -> pause.totalNs() < NS_PER_MS / 5), "none was short");
        assertTrue(pauses.stream().anyMatch(pause -> pause.totalNs() > 50 * NS_PER_MS), "none was long");
    }

    /** A recording takes seconds to start and to hand over, so the short form has one collector only. */
    static List<Collector> recordedCollectors() {
        return LONG ? List.of(Collector.values()) : List.of(Collector.G1);
    }

    @ParameterizedTest
    @MethodSource("recordedCollectors")
    void the_flight_recorder_misses_no_pause(final Collector collector) throws Exception {
        final Run run = provoke(collector, PauseClock.Way.FLIGHT_RECORDER);
        checkSpread(run.reported.stream().map(Reported::entry).toList());
        final long first = run.reported.get(0).id;
        final long last = run.reported.get(run.reported.size() - 1).id;
        assertEquals(last - first + 1, run.reported.size(), collector + ": numbers without gaps");

        final List<SafepointLog.Entry> log = run.log.between(first - 1, last);
        long logNs = 0;
        long reportedNs = 0;
        for (int n = 0; n < log.size(); n++) {
            final SafepointLog.Entry reported = run.reported.get(n).entry();
            assertEquals(log.get(n).operation(), reported.operation(), collector + ": pause " + n);
            logNs += log.get(n).totalNs();
            reportedNs += reported.totalNs();
        }
        assertEquals(logNs, reportedNs, logNs * MOST_OFF, collector + ": time told");
        final Shown sum = run.shown.get(run.shown.size() - 1);
        // The clock may start before the stream and end after it: what it counts is in the log.
        final List<SafepointLog.Entry> counted = run.log.between(sum.toNs - sum.after.begun(), sum.toNs);
        final long countedNs = counted.stream().mapToLong(SafepointLog.Entry::totalNs).sum();
        checkSpread(counted);
        assertEquals(countedNs, sum.after.pausedNs(), countedNs * MOST_OFF, collector + ": the clock made of the stream");
        run.shown.forEach(shown -> checkCause(shown, run.reported));
        final boolean reportsWhoIsLate = Runtime.version().feature() >= 25;
        boolean isReported = reportsWhoWasLate(run);
        for (int trial = 1; reportsWhoIsLate && !isReported && trial < LATE_TRIALS; trial++) {
            isReported = reportsWhoWasLate(provoke(collector, PauseClock.Way.FLIGHT_RECORDER));
        }
        assertEquals(reportsWhoIsLate, isReported);
    }

    private static boolean reportsWhoWasLate(final Run run) {
        return run.reported.stream().anyMatch(one -> one.lastToStop.equals("busy"));
    }

    /** What was provoked is reported within the time in which it was, and with its cause. */
    private static void checkCause(final Shown shown, final List<Reported> reported) {
        final List<Reported> within = reported.stream().filter(one -> one.liesWithin(shown)).toList();
        switch (shown.way) {
            case "REDEFINE" -> assertTrue(
                within.stream().anyMatch(one -> one.entry.operation().equals("RedefineClasses")), shown + ": " + within);
            case "COLLECT" -> {
                assertTrue(
                    within.stream().anyMatch(one -> one.collection.matches(".*Pause.*, .*: System.gc\\(\\)")), shown + ": " + within);
                assertTrue(
                    within.stream().noneMatch(one -> one.isOfConcurrentCollector() && one.collection.equals("-")),
                    shown + ": " + within);
            }
            default -> { }
        }
    }

    private Run provoke(final Collector collector, final PauseClock.Way way, final String... options) throws Exception {
        assertTrue(ChildJvm.has(collector.name()),
            "this JVM has no " + collector + " collector: run these tests with one that has all five");
        final Path log = directory.resolve("safepoints");
        final List<String> all = new ArrayList<>(List.of(
            "-Xmx512m", "-XX:+UnlockExperimentalVMOptions", "-XX:+Use" + collector + "GC",
            "-XX:LoopStripMiningIter=0", "-XX:-UseCountedLoopSafepoints",
            "-javaagent:" + ChildJvm.agentJar(directory, ProvokedJvm.class),
            String.format(SafepointLog.OPTION, log)));
        all.addAll(List.of(options));
        final List<String> lines = ChildJvm.run(
            directory, List.of(), all, ProvokedJvm.class, way.name(), Integer.toString(PROVOKED), "1");
        return new Run(
            lines.stream().filter(line -> !line.startsWith("PAUSE ")).map(Shown::parse).toList(),
            lines.stream().filter(line -> line.startsWith("PAUSE ")).map(Reported::parse).toList(),
            SafepointLog.read(log));
    }

    /** What the child printed, and the truth. */
    private record Run(List<Shown> shown, List<Reported> reported, SafepointLog log) {
    }

    /** A pause as the stream reported it. */
    private record Reported(long id, long beginNs, SafepointLog.Entry entry, String lastToStop, String collection) {
        /** The error of two clocks that are compared once per second. */
        private static final long CLOCKS_APART_NS = NS_PER_MS / 10;

        static Reported parse(final String line) {
            final String[] field = line.split(" ", 8);
            return new Reported(
                Long.parseLong(field[1]),
                Long.parseLong(field[2]),
                new SafepointLog.Entry(field[5], Long.parseLong(field[3]), Long.parseLong(field[4])),
                field[6],
                field[7]);
        }

        boolean isOfConcurrentCollector() {
            return entry.operation().matches("(Z|Shenandoah)[A-Z].*");
        }

        boolean liesWithin(final Shown shown) {
            return beginNs >= shown.fromNs - CLOCKS_APART_NS
                && beginNs + entry.totalNs() <= shown.toNs + CLOCKS_APART_NS;
        }
    }

    /** What the clock showed before and after one pause was provoked. */
    private record Shown(String way, PauseReading before, PauseReading after, long fromNs, long toNs) {
        static Shown parse(final String line) {
            final String[] field = line.split(" ");
            return new Shown(
                field[0], reading(field, 1), reading(field, 4), Long.parseLong(field[7]), Long.parseLong(field[8]));
        }

        private static PauseReading reading(final String[] field, final int at) {
            return new PauseReading(
                Long.parseLong(field[at]), Long.parseLong(field[at + 1]), Long.parseLong(field[at + 2]));
        }
    }
}
