package dev.parallax.recorder;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.HistogramLogReader;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** With {@code UPDATE_FORMATS=1} in the environment, {@code formats/golden/jvm} is written again. */
class RecordFolderTest {
    private static final Path GOLDEN = Path.of(System.getProperty("formats"), "golden");
    private static final long HOUR = 3_600_000_000_000L;
    private static final long[][] INTERVALS = {{0, 1_000_123_456}, {1_000_123_456, 999_876_544}, {2_000_000_000, 700_000_000}};

    @TempDir
    private Path folder;

    /** If this fails, Rust and Java no longer mean the same by a record. */
    @Test
    void theGoldenRecordIsWhatIsWrittenToday() throws IOException {
        if (System.getenv("UPDATE_FORMATS") != null) {
            write(GOLDEN.resolve("jvm"));
        }
        write(folder.resolve("fresh"));
        for (String name : List.of("run.json", "series.ndjson", "events.ndjson")) {
            assertEquals(Files.readString(GOLDEN.resolve("jvm").resolve(name)), Files.readString(folder.resolve("fresh").resolve(name)));
        }
        for (String name : List.of("response.hlog", "wait.hlog")) {
            // By what they hold: another zlib may pack the same counts otherwise.
            assertEquals(read(GOLDEN.resolve("jvm").resolve(name)), read(folder.resolve("fresh").resolve(name)));
        }
        assertEquals(List.of("events.ndjson", "response.hlog", "run.json", "series.ndjson", "wait.hlog"), names(folder.resolve("fresh")));
    }

    /** HdrHistogram's own reader finds what Rust's found. */
    @Test
    void theGoldenRecordReadsAsRustReadsIt() throws IOException {
        JsonNode expected = new ObjectMapper().readTree(GOLDEN.resolve("jvm-expected.json").toFile());
        assertEquals(2, expected.size());
        for (Map.Entry<String, JsonNode> log : expected.properties()) {
            Histogram merged = merge(read(GOLDEN.resolve("jvm").resolve(log.getKey() + ".hlog")), 2);
            check(log.getValue(), merged, log.getKey());
            assertEquals(log.getValue().get("sum_ns").asLong(), planted(log.getKey()), log.getKey());
        }
    }

    @Test
    void whatRustWroteReadsAsRustReadsIt() throws IOException {
        JsonNode expected = new ObjectMapper().readTree(GOLDEN.resolve("expected.json").toFile());
        assertTrue(expected.size() > 10);
        for (Map.Entry<String, JsonNode> log : expected.properties()) {
            List<Histogram> lines = read(GOLDEN.resolve("run").resolve(log.getKey()));
            assertEquals(log.getValue().get("lines").size(), lines.size());
            for (int i = 0; i < lines.size(); i++) {
                check(log.getValue().get("lines").get(i), lines.get(i), log.getKey() + " line " + i);
            }
            check(log.getValue().get("merged"), merge(lines, 3), log.getKey());
        }
    }

    /** If this fails, another user of the host can make an application overwrite any file. */
    @Test
    void nothingIsWrittenThroughALink() throws IOException {
        Path victim = Files.writeString(folder.resolve("victim"), "mine");
        Path record = Files.createDirectory(folder.resolve("record"));
        for (String name : List.of("run.json.unfinished", "response.hlog")) {
            Files.createSymbolicLink(record.resolve(name), victim);
        }
        assertThrows(IOException.class, () -> record(record));
        assertEquals("mine", Files.readString(victim));
        Path claimed = Files.createDirectory(folder.resolve("claimed"));
        Files.createSymbolicLink(claimed.resolve("series.ndjson"), folder.resolve("elsewhere"));
        assertThrows(FileAlreadyExistsException.class, () -> record(claimed));
        assertTrue(Files.notExists(folder.resolve("elsewhere")));
    }

    /** If this fails, any user of the host can read or replace what an application of root recorded. */
    @Test
    void aRecordOfRootIsRootsAlone() throws IOException {
        Path record = folder.resolve("new/record");
        record(record);
        if (!isRoot()) {
            // Only root's are restricted, and only root can give a folder to another user.
            assertThrows(AccessDeniedException.class, () -> new RecordFolder(Path.of("/"), facts()));
            return;
        }
        assertEquals("rwx------", permissions(record));
        for (String name : names(record)) {
            assertEquals("rw-------", permissions(record.resolve(name)), name);
        }
        Path foreign = Files.createDirectory(folder.resolve("foreign"));
        Files.setAttribute(foreign, "unix:uid", 65534);
        Path link = Files.createSymbolicLink(folder.resolve("link"), foreign);
        for (Path path : List.of(foreign, link)) {
            assertThrows(AccessDeniedException.class, () -> record(path));
        }
        assertEquals(List.of(), names(foreign));
    }

    private static boolean isRoot() throws IOException {
        return Files.getAttribute(Path.of("/proc/self"), "unix:uid").equals(0);
    }

    private static String permissions(Path path) throws IOException {
        return PosixFilePermissions.toString(Files.getPosixFilePermissions(path));
    }

    /** A count is where HdrHistogram itself would have put it, line by line. */
    @Test
    void theLogHoldsTheIntervalsThatWereRecorded() throws IOException {
        write(folder.resolve("fresh"));
        List<Histogram> lines = read(folder.resolve("fresh").resolve("response.hlog"));
        assertEquals(3, lines.size());
        for (int i = 0; i < 3; i++) {
            Histogram truth = new Histogram(1, HOUR, 2);
            for (long us = 1; us <= 1_000; us++) {
                truth.recordValue(us * 1_000);
            }
            if (i == 2) {
                truth.recordValue(HOUR);
            }
            assertEquals(truth, lines.get(i));
            // The reader keeps milliseconds of the nine digits that are there.
            assertEquals(INTERVALS[i][0] / 1_000_000, lines.get(i).getStartTimeStamp() - zero().toEpochMilli());
        }
        String second = Files.readAllLines(folder.resolve("fresh").resolve("response.hlog")).get(5);
        assertTrue(second.startsWith("1.000123456,0.999876544,1."), second.substring(0, 40));
    }

    @Test
    void whatCannotBeIsRefusedAndLeavesTheRecordAsItWas() throws IOException {
        try (RecordFolder record = new RecordFolder(folder.resolve("one"), facts())) {
            Recorder recorder = new Recorder();
            recorder.record(5);
            record.append(0, 10, Map.of("a", recorder.total()));
            assertThrows(IllegalArgumentException.class, () -> record.append(0, 10, Map.of()));
            for (String name : List.of("", "../a", "1", "a/b", "a.hlog")) {
                assertThrows(IOException.class, () -> record.append(10, 10, Map.of("a", recorder.total(), name, recorder.total())));
            }
            // As where memory gives out half way.
            Map<String, Durations> broken = new TreeMap<>(Map.of("a", recorder.total()));
            broken.put("b", null);
            assertThrows(NullPointerException.class, () -> record.append(10, 10, broken));
            assertEquals(1, read(folder.resolve("one").resolve("a.hlog")).size());
            record.append(10, 10, Map.of("a", recorder.total(), "none", Durations.NONE));
        }
        assertEquals(2, read(folder.resolve("one").resolve("a.hlog")).size());
        assertEquals(2, Files.readAllLines(folder.resolve("one").resolve("series.ndjson")).size());
        assertEquals(List.of("a.hlog", "run.json", "series.ndjson"), names(folder.resolve("one")));
        assertThrows(FileAlreadyExistsException.class, () -> new RecordFolder(folder.resolve("one"), facts()));
    }

    /** If this fails, a record with many hiccups, or of many days, is refused as a whole. */
    @Test
    void aRecordIsNoLongerThanCanBeRead() throws IOException {
        Path path = folder.resolve("long");
        long seriesMax = 400;
        long eventsMax = 1_000;
        Recorder recorder = new Recorder();
        recorder.record(5);
        int intervals = 0;
        try (RecordFolder record = new RecordFolder(path, facts(), seriesMax, eventsMax)) {
            while (record.append(intervals * 10, 10, Map.of("a", recorder.total()))) {
                intervals++;
                assertTrue(intervals < seriesMax, "it never ends");
            }
            for (int n = 0; n < 100; n++) {
                record.event(n, "note", "für \"Menschen\" " + n);
            }
            record.finish(intervals * 10L);
        }
        long line = Files.size(path.resolve("series.ndjson")) / intervals;
        assertTrue(Files.size(path.resolve("series.ndjson")) <= seriesMax);
        assertTrue(Files.size(path.resolve("series.ndjson")) > seriesMax - line - 5, intervals + " intervals");
        assertEquals(intervals, Files.readAllLines(path.resolve("series.ndjson")).size());
        assertEquals(intervals, read(path.resolve("a.hlog")).size());
        List<String> events = Files.readAllLines(path.resolve("events.ndjson"));
        assertTrue(Files.size(path.resolve("events.ndjson")) <= eventsMax);
        assertTrue(events.size() > 10, events.toString());
        for (int n = 0; n < events.size(); n++) {
            JsonNode event = new ObjectMapper().readTree(events.get(n));
            assertEquals(n, event.get("at_ns").asInt());
            assertEquals(n == events.size() - 1 ? "lost" : "note", event.get("kind").asText());
        }
        JsonNode run = new ObjectMapper().readTree(path.resolve("run.json").toFile());
        assertEquals("finished", run.get("state").asText());
        assertEquals(intervals * 10, run.at("/time/elapsed_ns").asInt());
        assertEquals("events: " + (100 - (events.size() - 1)), run.at("/missing/0/what").asText());
    }

    @Test
    void factsOfThisJvmAreThoseOfThisJvm() {
        JvmFacts facts = JvmFacts.ofThisJvm(Map.of());
        assertEquals(System.getProperty("java.version"), facts.javaVersion());
        assertTrue(facts.bootId().matches("[0-9a-f-]{36}"), facts.bootId());
        assertTrue(!facts.collectors().isEmpty());
    }

    private static void write(Path path) throws IOException {
        if (Files.exists(path)) {
            for (String name : names(path)) {
                Files.delete(path.resolve(name));
            }
        }
        record(path);
    }

    private static void record(Path path) throws IOException {
        try (RecordFolder record = new RecordFolder(path, facts())) {
            Timing timing = new Timing();
            Map<String, Durations> before = Map.of("response", Durations.NONE, "wait", Durations.NONE);
            for (int i = 0; i < 3; i++) {
                plant(timing, i);
                Map<String, Durations> now = Map.of("response", timing.response().total(), "wait", timing.waited().total());
                Map<String, Durations> interval = new TreeMap<>();
                for (String name : now.keySet()) {
                    interval.put(name, now.get(name).since(before.get(name)));
                }
                record.append(INTERVALS[i][0], INTERVALS[i][1], interval);
                before = now;
            }
            record.event(1_200_000_000, "note", "what \"people\" read");
            record.pause(1_500_000_000, 1_503_000_000, "G1 Evacuation Pause");
            Map<String, Long> causes = new TreeMap<>(Map.of("safepoint", 3_000_000L, "timer", 1_000_000L));
            record.hiccup(1_500_000_000, 4_000_000, causes, "hiccup of 4.0 ms: safepoint 3.0 ms, timer 1.0 ms");
            record.finish(2_700_000_000L);
        }
    }

    private static void plant(Timing timing, int interval) {
        for (long us = 1; us <= 1_000; us++) {
            timing.response().record(us * 1_000);
        }
        if (interval == 0) {
            timing.response().record(-1);
            timing.response().record(Long.MAX_VALUE);
        }
        if (interval == 1) {
            for (long ns = 0; ns < 300; ns++) {
                timing.waited().record(ns);
            }
        }
        if (interval == 2) {
            timing.response().record(3 * HOUR);
        }
    }

    private static long planted(String log) {
        return log.equals("wait") ? 300 * 299 / 2 : 3 * 500_500_000L + 3 * HOUR;
    }

    private static Instant zero() {
        return Instant.parse("2026-01-31T12:00:00.250Z");
    }

    private static JvmFacts facts() {
        return new JvmFacts(
                zero(),
                77_000_000_123L,
                "17.0.15",
                "OpenJDK 64-Bit Server VM",
                List.of("G1 Young Generation", "G1 Old Generation"),
                "6.1.0",
                "0a1b2c3d-0000-4000-8000-00000000cafe",
                2,
                4711L,
                0,
                new TreeMap<>(Map.of("response", "of GET /items", "wait", "for a connection")),
                new TreeMap<>(Map.of(
                        "interval", new JvmFacts.EffectiveOption("1s", false),
                        "out", new JvmFacts.EffectiveOption("a \"record\"", true))));
    }

    private static void check(JsonNode expected, Histogram found, String what) {
        assertEquals(expected.get("count").asLong(), found.getTotalCount(), what);
        assertEquals(expected.get("p50_ns").asLong(), found.getValueAtPercentile(50), what);
        assertEquals(expected.get("p90_ns").asLong(), found.getValueAtPercentile(90), what);
        assertEquals(expected.get("max_ns").asLong(), found.getMaxValue(), what);
    }

    private static Histogram merge(List<Histogram> lines, int digits) {
        Histogram merged = new Histogram(1, HOUR, digits);
        lines.forEach(merged::add);
        return merged;
    }

    private static List<Histogram> read(Path log) throws IOException {
        List<Histogram> lines = new ArrayList<>();
        try (HistogramLogReader reader = new HistogramLogReader(log.toFile())) {
            for (Object line = reader.nextIntervalHistogram(); line != null; line = reader.nextIntervalHistogram()) {
                lines.add((Histogram) line);
            }
        }
        return lines;
    }

    private static List<String> names(Path folder) throws IOException {
        try (var files = Files.list(folder)) {
            Iterator<String> names = files.map(file -> file.getFileName().toString()).sorted().iterator();
            List<String> all = new ArrayList<>();
            names.forEachRemaining(all::add);
            return all;
        }
    }
}
