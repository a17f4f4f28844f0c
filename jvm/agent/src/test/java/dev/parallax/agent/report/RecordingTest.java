package dev.parallax.agent.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.parallax.recorder.Recorder;
import dev.parallax.recorder.ShortFolder;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.HistogramLogReader;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RecordingTest {
    private static final Pattern LOG = Pattern.compile("\"([^\"]+)\":\\{\"count\":([0-9]+)");
    private static final int LOGS_MAX = 256;
    private static final int NAMES = 300;
    private static final int CAUSES = 11;

    @TempDir
    private Path folder;

    private final Map<Series, Map<String, Recorder>> recorded = new EnumMap<>(Series.class);

    RecordingTest() {
        for (Series series : Series.values()) {
            recorded.put(series, new ConcurrentSkipListMap<>());
        }
    }

    private void record(Series series, String label) {
        recorded.get(series).computeIfAbsent(label, name -> new Recorder()).record(1_000);
    }

    private void read(Reader reader) {
        recorded.forEach((series, labels) ->
                labels.forEach((label, recorder) -> reader.durations(series, label, recorder.total())));
    }

    private Recording start(Source source) throws IOException {
        Recording recording = Recording.begin(List.of(source), folder.resolve("record"), Duration.ofMillis(1), Map.of());
        recording.start();
        return recording;
    }

    /**
     * If this fails, a record whose thread ran out of memory just after writing an interval gets no further
     * interval.
     */
    @Test
    void whatIsWrittenIsKnownAsWritten() throws Exception {
        AtomicBoolean isRefused = new AtomicBoolean();
        // When its hash code is requested, it needs memory, and there is none once an interval is written.
        Source source = new Source() {
            @Override
            public void read(Reader reader) {
                RecordingTest.this.read(reader);
            }

            @Override
            public int hashCode() {
                if (folder.resolve("record/series.ndjson").toFile().length() > 0 && isRefused.compareAndSet(false, true)) {
                    throw new OutOfMemoryError("planted");
                }
                return 1;
            }
        };
        record(Series.DB_USE, "main");
        Recording recording = start(source);
        until(isRefused::get);
        record(Series.DB_USE, "main");
        recording.finish();
        assertTrue(Files.readString(folder.resolve("record/run.json")).contains("\"state\":\"finished\""));
        assertEquals(Map.of("db.client.connection.use_time-main", 2L), counts());
    }

    /** If this fails, a record of maximum length is never finished, or continues and cannot be read. */
    @Test
    void aRecordThatIsFullIsFinishedAndStaysAsItIs() throws Exception {
        record(Series.DB_USE, "main");
        Recording recording = new Recording(
                List.of(this::read), folder.resolve("record"), Duration.ofMillis(1), Map.of(),
                (path, facts) -> ShortFolder.make(path, facts, 500));
        recording.start();
        Path run = folder.resolve("record/run.json");
        until(() -> {
            record(Series.DB_USE, "main");
            return Files.readString(run).contains("\"state\":\"finished\"");
        });
        String finished = Files.readString(run);
        record(Series.DB_USE, "main");
        recording.finish();
        assertEquals(finished, Files.readString(run));
        String series = Files.readString(folder.resolve("record/series.ndjson"));
        assertTrue(!series.isEmpty() && series.length() <= 500, series);
        Matcher last = Pattern.compile("\"start_ns\":([0-9]+),\"length_ns\":([0-9]+),[^\n]*\n\\z").matcher(series);
        assertTrue(last.find());
        long endNs = Long.parseLong(last.group(1)) + Long.parseLong(last.group(2));
        assertTrue(finished.contains("\"elapsed_ns\":" + endNs + ","), finished);
        // What is in the logs is in the series.
        counts();
    }

    /** If this fails, an application with a pool for each tenant has a record that lacks what came later. */
    @Test
    void aRecordHoldsAllThoughNotAllByName() throws Exception {
        for (int name = 0; name < NAMES; name++) {
            record(Series.DB_WAIT, "tenant-" + name);
            record(Series.DB_USE, "tenant-" + name);
        }
        Recording recording = start(this::read);
        until(() -> !committed().isEmpty());
        for (Series series : Series.values()) {
            if (!series.title().startsWith("jvm.")) {
                later(series, NAMES);
                record(series, Series.OTHER);
            } else if (series.title().endsWith(".part")) {
                later(series, CAUSES);
            } else {
                record(series, "");
            }
        }
        // A label with its own log keeps it, and one without stays among all others.
        record(Series.DB_USE, "tenant-0");
        record(Series.DB_USE, "tenant-" + (NAMES - 1));
        recording.finish();
        Map<String, Long> counts = counts();
        Map<String, Long> reported = new TreeMap<>();
        counts.forEach((log, count) -> reported.merge(log.split("-")[0], count, Long::sum));
        Map<String, Long> all = new TreeMap<>();
        recorded.forEach((series, labels) ->
                labels.values().forEach(recorder -> all.merge(series.title(), recorder.total().count(), Long::sum)));
        assertEquals(all, reported);
        assertTrue(counts.size() <= LOGS_MAX, counts.size() + " logs");
        assertEquals(2, counts.get("db.client.connection.use_time-tenant-0"));
        // The latest labels have their own logs as well.
        for (String label : List.of("later-0", Series.OTHER)) {
            assertTrue(counts.containsKey(Series.HTTP_REQUEST.log(label)), counts.keySet().toString());
        }
        for (int cause = 0; cause < CAUSES; cause++) {
            assertEquals(1, counts.get(Series.HICCUP_PART.log("later-" + cause)));
        }
    }

    private void later(Series series, int names) {
        for (int name = 0; name < names; name++) {
            record(series, "later-" + name);
        }
    }

    private static void until(Callable<Boolean> condition) throws Exception {
        long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (!condition.call()) {
            assertTrue(System.nanoTime() - endNs < 0, "it does not happen");
            Thread.sleep(1);
        }
    }

    /** The contents of each log, read with HdrHistogram's own reader, as stated by the series. */
    private Map<String, Long> counts() throws IOException {
        Map<String, Long> counts = new TreeMap<>();
        try (DirectoryStream<Path> logs = Files.newDirectoryStream(folder.resolve("record"), "*.hlog")) {
            for (Path log : logs) {
                counts.put(log.getFileName().toString().replace(".hlog", ""), count(log));
            }
        }
        assertEquals(committed(), counts);
        return counts;
    }

    private static long count(Path log) throws IOException {
        long count = 0;
        try (HistogramLogReader reader = new HistogramLogReader(log.toFile())) {
            while (reader.hasNext()) {
                count += ((Histogram) reader.nextIntervalHistogram()).getTotalCount();
            }
        }
        return count;
    }

    /** By the lines of the series that are whole, which may go on being written. */
    private Map<String, Long> committed() throws IOException {
        Map<String, Long> counts = new TreeMap<>();
        String series = Files.readString(folder.resolve("record/series.ndjson"));
        long last = -1;
        for (String line : series.substring(0, series.lastIndexOf('\n') + 1).lines().toList()) {
            long start = Long.parseLong(line.replaceAll("\\{\"start_ns\":([0-9]+),.*", "$1"));
            assertTrue(start > last, start + " ns after " + last + " ns");
            last = start;
            Matcher log = LOG.matcher(line);
            while (log.find()) {
                counts.merge(log.group(1), Long.parseLong(log.group(2)), Long::sum);
            }
        }
        return counts;
    }
}
