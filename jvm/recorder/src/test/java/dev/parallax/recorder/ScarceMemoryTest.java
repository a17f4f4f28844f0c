package dev.parallax.recorder;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.HistogramLogReader;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Memory gives out while recorders are read or a record is written, and comes back. */
class ScarceMemoryTest {
    private static final int STEPS = 2;
    private static final JvmFacts FACTS = JvmFacts.ofThisJvm(Map.of());
    private static final ObjectMapper JSON = new ObjectMapper();

    @TempDir
    private Path folder;

    /** What is recorded: one log more with every step, so that files are made all along. */
    private final Map<String, Recorder> recorded = new LinkedHashMap<>();

    /** What is in the record. */
    private Map<String, Durations> kept = new HashMap<>();

    private long begunNs;
    private long nowNs;
    private Path path;

    /**
     * Wherever it gives out, and once more so soon that it is also missing for taking back what was begun. If this fails, a
     * record that met an OutOfMemoryError is refused, or lacks something, or has it twice.
     */
    @Test
    void aRecordThatHadNoMemoryForAWhileIsWhole() throws IOException {
        for (int apart = 0; apart <= 2; apart++) {
            for (int after = 0; isRefusedAfter(after, apart); after++) {
                assertEquals(total(recorded), read(path), "at place " + after + " and " + apart + " later");
                assertEquals(STEPS, events(), "at place " + after + " and " + apart + " later");
            }
        }
    }

    /** Returns false if there are not this many operations. */
    private boolean isRefusedAfter(int after, int apart) throws IOException {
        path = folder.resolve(after + "-" + apart);
        recorded.clear();
        kept = new HashMap<>();
        begunNs = 0;
        nowNs = 0;
        ScarceDisk disk = new ScarceDisk();
        try (RecordFolder record = new RecordFolder(disk.on(path), FACTS)) {
            disk.refuse(after, apart);
            for (int step = 0; step < STEPS; step++) {
                recorded.put("log" + step, new Recorder());
                again(() -> append(record));
                int now = step;
                again(() -> record.event(nowNs, "note", "step " + now));
            }
            again(() -> record.finish(nowNs));
        }
        return disk.hasRefused();
    }

    private void again(AtomicFiles.Step step) throws IOException {
        while (true) {
            try {
                step.write();
                return;
            } catch (OutOfMemoryError e) {
                // A program that exits here leaves a record that can be read.
                read(path);
            }
        }
    }

    /** As the agent does: what could not be written is a part of the next interval. */
    private void append(RecordFolder record) throws IOException {
        nowNs += 1_000;
        Map<String, Durations> now = new HashMap<>();
        recorded.forEach((log, recorder) -> {
            recorder.record(nowNs);
            now.put(log, recorder.total());
        });
        Map<String, Durations> interval = new TreeMap<>();
        now.forEach((log, total) -> interval.put(log, total.since(kept.getOrDefault(log, Durations.NONE))));
        record.append(begunNs, nowNs - begunNs, interval);
        kept = now;
        begunNs = nowNs;
    }

    private static Map<String, Long> total(Map<String, Recorder> recorded) {
        Map<String, Long> total = new TreeMap<>();
        recorded.forEach((log, recorder) -> total.put(log, recorder.total().count()));
        return total;
    }

    private long events() throws IOException {
        List<String> texts = new ArrayList<>();
        for (String line : lines(path.resolve("events.ndjson"))) {
            texts.add(JSON.readTree(line).get("text").asText());
        }
        return texts.stream().distinct().count() == texts.size() ? texts.size() : -1;
    }

    /** By the rule of the commit, the counts of each log. */
    private static Map<String, Long> read(Path record) throws IOException {
        Map<String, List<String>> lines = new HashMap<>();
        Map<String, Long> counts = new TreeMap<>();
        long last = -1;
        for (String line : lines(record.resolve("series.ndjson"))) {
            JsonNode interval = JSON.readTree(line);
            long start = interval.get("start_ns").asLong();
            assertTrue(start > last, start + " ns after " + last + " ns");
            last = start;
            for (Map.Entry<String, JsonNode> log : interval.get("logs").properties()) {
                lines.computeIfAbsent(log.getKey(), name -> new ArrayList<>())
                        .add(seconds(start) + "," + seconds(interval.get("length_ns").asLong()));
                counts.merge(log.getKey(), log.getValue().get("count").asLong(), Long::sum);
            }
        }
        for (String log : lines.keySet()) {
            check(record.resolve(log + ".hlog"), lines.get(log), counts.get(log));
        }
        return counts;
    }

    /** A line that is not committed begins with none of the starts. */
    private static void check(Path log, List<String> committed, long count) throws IOException {
        List<String> starts = committed.stream().map(line -> line.split(",")[0]).toList();
        List<String> found = lines(log).stream()
                .filter(line -> starts.contains(line.split(",")[0]))
                .map(line -> line.split(",")[0] + "," + line.split(",")[1])
                .toList();
        assertEquals(committed, found, log.toString());
        long read = 0;
        try (HistogramLogReader reader = new HistogramLogReader(log.toFile())) {
            for (int line = 0; line < committed.size(); line++) {
                read += ((Histogram) reader.nextIntervalHistogram()).getTotalCount();
            }
        }
        assertEquals(count, read, log.toString());
    }

    private static String seconds(long ns) {
        return String.format(Locale.ROOT, "%d.%09d", ns / 1_000_000_000, ns % 1_000_000_000);
    }

    /** Without a last one that is torn. */
    private static List<String> lines(Path file) throws IOException {
        String text = Files.readString(file);
        return text.substring(0, text.lastIndexOf('\n') + 1).lines().toList();
    }

    /** If this fails, a folder in which a start failed for a moment can hold no record again. */
    @Test
    void aStartThatHadNoMemoryLeavesTheFolderFree() throws IOException {
        boolean hasFailed = true;
        // From the time of the claim on: before, the owner of the directory is unknown.
        for (int after = 2; hasFailed; after++) {
            path = folder.resolve("start" + after);
            ScarceDisk disk = new ScarceDisk();
            disk.refuse(after, Integer.MAX_VALUE - 1);
            try {
                new RecordFolder(disk.on(path), FACTS).close();
            } catch (OutOfMemoryError e) {
                assertEquals(0, path.toFile().list().length, "at place " + after);
                new RecordFolder(disk.on(path), FACTS).close();
            }
            hasFailed = disk.hasRefused();
        }
        assertTrue(!path.endsWith("start2"), "no place was within the document");
    }

    /** As if memory ran out before its creation was noticed; a log with data was created by something else. */
    @Test
    void anEmptyLogIsTakenAndNoOther() throws IOException {
        Recorder recorder = new Recorder();
        recorder.record(5);
        path = folder.resolve("made");
        try (RecordFolder record = new RecordFolder(path, FACTS)) {
            Files.createFile(path.resolve("ours.hlog"));
            Files.writeString(path.resolve("theirs.hlog"), "something");
            assertThrows(
                    FileAlreadyExistsException.class,
                    () -> record.append(0, 10, Map.of("ours", recorder.total(), "theirs", recorder.total())));
            record.append(0, 20, Map.of("ours", recorder.total()));
        }
        assertEquals(Map.of("ours", 1L), read(path));
        assertEquals("something", Files.readString(path.resolve("theirs.hlog")));
    }

    /** If this fails, what threads recorded that died of the error is lost, or is counted twice. */
    @Test
    void aRecorderThatHadNoMemoryToBeReadHasEachCountOnce() throws IOException, InterruptedException {
        String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
        String classes = System.getProperty("java.class.path");
        // Without buffers for each thread, to the byte.
        Process jvm = new ProcessBuilder(
                        java, "-Xmx16m", "-XX:+UseSerialGC", "-XX:-UseTLAB", "-cp", classes, ScarceHeap.class.getName())
                .redirectErrorStream(true)
                .start();
        List<String> reported = new String(jvm.getInputStream().readAllBytes()).lines().toList();
        assertEquals(0, jvm.waitFor(), reported.toString());
        assertEquals(6, reported.size(), reported.toString());
        for (int at = 0; at < reported.size(); at += 3) {
            assertTrue(Integer.parseInt(reported.get(at)) > 5, "it was refused at many places: " + reported);
            assertEquals(reported.get(at + 1), reported.get(at + 2), "after it was refused " + reported.get(at) + " times");
        }
    }
}
