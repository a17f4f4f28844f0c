package dev.parallax.recorder;

import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SeekableByteChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * Writes a run record of the kind {@code jvm}: a folder that {@code parallax report} and {@code parallax explain} read.
 * A crash at any moment loses at most the last interval.
 *
 * <p>The histograms of an interval are written first and its line of {@code series.ndjson} last: that line files the
 * interval. A failed write is rolled back, even after an out-of-memory error. Not thread-safe; nothing is synced to
 * disk.
 */
public final class RecordFolder implements Closeable {
    private static final String RUN = "run.json";
    private static final String UNFINISHED = "run.json.unfinished";
    private static final String SERIES = "series.ndjson";
    private static final String EVENTS = "events.ndjson";
    private static final String PAUSE = "pause";
    private static final String HICCUP = "hiccup";
    private static final String LOST = "lost";
    private static final String TOO_LONG = "their file has reached the maximum size that can be read";
    private static final int LOGS_MAX = 256;

    /** Limits of the readers, which refuse a record with larger files. */
    private static final long SERIES_BYTES_MAX = 256L << 20;

    private static final long EVENTS_BYTES_MAX = 64L << 20;

    /** Reserved for the event that says that further events were dropped. */
    private static final long LAST_EVENT_BYTES_MAX = 200;

    private final Path path;
    private final JvmFacts facts;
    private final long seriesBytesMax;
    private final long eventsBytesMax;
    private final AtomicFiles files;
    private final Set<String> names = new HashSet<>();
    private long lastStartNs = -1;
    private long lostEvents;

    /**
     * Creates the folder and its parents. Those of root, and their files, can be read by root alone.
     *
     * @param path of a folder that holds no record yet
     * @param facts what the record states about the JVM
     * @throws IOException if there is a record already, the folder belongs to another user, or it cannot be written
     */
    public RecordFolder(Path path, JvmFacts facts) throws IOException {
        this(path, facts, SERIES_BYTES_MAX, EVENTS_BYTES_MAX);
    }

    RecordFolder(Path path, JvmFacts facts, long seriesBytesMax, long eventsBytesMax) throws IOException {
        this.path = path;
        this.facts = facts;
        this.seriesBytesMax = seriesBytesMax;
        this.eventsBytesMax = eventsBytesMax;
        RecordAccess.createFolder(path);
        if (Files.exists(path.resolve(RUN))) {
            throw new FileAlreadyExistsException(path + " already contains a record; use another directory");
        }
        files = new AtomicFiles(path);
        files.claim(SERIES);
        try {
            replaceDocument("running", null);
        } catch (IOException | RuntimeException | Error e) {
            removeClaim();
            throw e;
        }
    }

    /** Removes the files, so that the folder can hold a record later. */
    private void removeClaim() {
        try {
            files.close();
            // The claim last: anyone who claims the folder next finds no document in it.
            for (String name : List.of(UNFINISHED, RUN, SERIES)) {
                Files.deleteIfExists(path.resolve(name));
            }
        } catch (IOException | RuntimeException | Error e) {
            // The first failure is the one to report.
        }
    }

    /**
     * Adds an interval.
     *
     * @param startNs start of the interval, from the start of the record; after the start of the previous one
     * @param lengthNs length of the interval
     * @param logs what was recorded in it, by name of the log; empty ones are left out
     * @return false if the record has reached the size that can be read; the interval is not in it, and the record
     *     should be finished
     * @throws IOException if it cannot be written, for example on a full disk; the interval is then not in the folder,
     *     and the next one may succeed
     */
    public boolean append(long startNs, long lengthNs, Map<String, Durations> logs) throws IOException {
        if (startNs <= lastStartNs || lengthNs < 0) {
            throw new IllegalArgumentException("an interval at " + startNs + " ns after one at " + lastStartNs + " ns");
        }
        Map<String, Durations> sorted = new TreeMap<>(logs);
        checkNames(sorted);
        String line = seriesLine(startNs, lengthNs, sorted);
        files.rollBack();
        // The line is ASCII, so its length is its size in bytes.
        if (files.length(SERIES) + line.length() > seriesBytesMax) {
            return false;
        }
        files.atomically(() -> {
            writeHistograms(startNs, lengthNs, sorted);
            files.add(SERIES, line);
        });
        lastStartNs = startNs;
        return true;
    }

    private void writeHistograms(long startNs, long lengthNs, Map<String, Durations> logs) throws IOException {
        for (Map.Entry<String, Durations> log : logs.entrySet()) {
            if (log.getValue().count() > 0) {
                writeLine(log.getKey(), HlogLines.line(startNs, lengthNs, log.getValue()));
            }
        }
    }

    private static String seriesLine(long startNs, long lengthNs, Map<String, Durations> logs) {
        Map<String, Object> sums = new LinkedHashMap<>();
        Map<String, Object> unusable = new LinkedHashMap<>();
        for (Map.Entry<String, Durations> log : logs.entrySet()) {
            Durations durations = log.getValue();
            if (durations.unusable() > 0) {
                unusable.put(log.getKey(), durations.unusable());
            }
            if (durations.count() > 0) {
                sums.put(log.getKey(), sums(durations));
            }
        }
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("start_ns", startNs);
        line.put("length_ns", lengthNs);
        line.put("logs", sums);
        line.put("unusable", unusable);
        return Json.of(line) + "\n";
    }

    private void writeLine(String log, String line) throws IOException {
        String file = log + ".hlog";
        files.add(file, files.length(file) == 0 ? HlogLines.header(facts.zero()) + line : line);
    }

    private void checkNames(Map<String, Durations> logs) throws IOException {
        for (Map.Entry<String, Durations> log : logs.entrySet()) {
            String name = log.getKey();
            if (log.getValue().count() == 0 || names.contains(name)) {
                continue;
            }
            boolean fits = name.matches("[a-zA-Z][a-zA-Z0-9_.-]{0,99}") && !name.endsWith(".hlog");
            if (!fits || names.size() == LOGS_MAX) {
                throw new IOException("invalid log name " + name + ": it must begin with a letter and have at"
                        + " most 100 letters, digits, _ - or . and a record has at most " + LOGS_MAX);
            }
            names.add(name);
        }
    }

    private static Map<String, Object> sums(Durations durations) {
        Map<String, Object> sums = new LinkedHashMap<>();
        sums.put("count", durations.count());
        sums.put("sum_ns", durations.sumNs());
        if (durations.outOfRange() > 0) {
            sums.put("out_of_range", durations.outOfRange());
        }
        return sums;
    }

    /**
     * Adds an event. Once the size limit is reached, one event of kind {@code lost} says so and further events are
     * counted.
     *
     * @param atNs time from the start of the record
     * @param kind one word
     * @param text one line for people
     * @throws IOException if it cannot be written; the event is then not in the folder
     */
    public void event(long atNs, String kind, String text) throws IOException {
        write(event(atNs, kind, text, null));
    }

    /**
     * Adds a pause: a period in which no application thread ran. {@code parallax explain} finds the requests in it.
     *
     * @param beginNs when the JVM asked all threads to stop, from the start of the record
     * @param endNs when they ran again, from the start of the record
     * @param cause as named by the JVM; null if unknown
     * @throws IOException if it cannot be written; the event is then not in the folder
     */
    public void pause(long beginNs, long endNs, String cause) throws IOException {
        if (beginNs < 0 || endNs < beginNs) {
            throw new IllegalArgumentException("a pause from " + beginNs + " to " + endNs + " ns");
        }
        Map<String, Object> pause = new LinkedHashMap<>();
        pause.put("begin_ns", beginNs);
        pause.put("end_ns", endNs);
        if (cause != null) {
            pause.put("cause", cause);
        }
        String length = String.format(Locale.ROOT, "%.3f ms", (endNs - beginNs) / 1e6);
        write(event(beginNs, PAUSE, "stood still for " + length + (cause == null ? "" : ": " + cause), pause));
    }

    /**
     * Adds a hiccup: a period in which an application thread would not have run. {@code parallax report} lists the
     * longest.
     *
     * @param atNs when the meter should have woken up, from the start of the record
     * @param lengthNs how late it woke up
     * @param causesNs nanoseconds by cause
     * @param text one line for people
     * @throws IOException if it cannot be written; the event is then not in the folder
     */
    public void hiccup(long atNs, long lengthNs, Map<String, Long> causesNs, String text) throws IOException {
        if (atNs < 0 || lengthNs < 0 || causesNs.values().stream().anyMatch(ns -> ns < 0)) {
            throw new IllegalArgumentException("a hiccup of " + lengthNs + " ns at " + atNs + ": " + causesNs);
        }
        Map<String, Object> hiccup = new LinkedHashMap<>();
        hiccup.put("length_ns", lengthNs);
        if (!causesNs.isEmpty()) {
            hiccup.put("causes_ns", causesNs);
        }
        write(event(atNs, HICCUP, text, hiccup));
    }

    /** @param what figures under the name of the kind; null if there are none */
    private static Map<String, Object> event(long atNs, String kind, String text, Map<String, Object> what) {
        Map<String, Object> event = new LinkedHashMap<>();
        event.put("at_ns", atNs);
        event.put("kind", kind);
        event.put("text", text);
        if (what != null) {
            event.put(kind, what);
        }
        return event;
    }

    private void write(Map<String, Object> event) throws IOException {
        if (lostEvents == 0) {
            String line = Json.of(event) + "\n";
            files.rollBack();
            long bytes = files.length(EVENTS) + line.getBytes(StandardCharsets.UTF_8).length;
            if (bytes + LAST_EVENT_BYTES_MAX <= eventsBytesMax) {
                files.atomically(() -> files.add(EVENTS, line));
                return;
            }
            long atNs = (Long) event.get("at_ns");
            String last = Json.of(event(atNs, LOST, "further events are dropped: " + TOO_LONG, null)) + "\n";
            files.atomically(() -> files.add(EVENTS, last));
        }
        lostEvents++;
    }

    /**
     * Finishes the record.
     *
     * @param elapsedNs end of the last interval, from the start of the record
     * @throws IOException if it cannot be written; the record then reads as interrupted
     */
    public void finish(long elapsedNs) throws IOException {
        files.rollBack();
        replaceDocument("finished", elapsedNs);
    }

    @Override
    public void close() throws IOException {
        files.close();
    }

    private void replaceDocument(String state, Long elapsedNs) throws IOException {
        Path unfinished = path.resolve(UNFINISHED);
        Map<String, Object> document = facts.document(state, elapsedNs);
        if (lostEvents > 0) {
            document.put("missing", List.of(new TreeMap<>(Map.of("what", "events: " + lostEvents, "why", TOO_LONG))));
        }
        // Left by a process that was killed, or created by another user: removed, never written through.
        Files.deleteIfExists(unfinished);
        try (SeekableByteChannel file = RecordAccess.open(unfinished, StandardOpenOption.CREATE_NEW)) {
            ByteBuffer bytes = StandardCharsets.UTF_8.encode(Json.of(document) + "\n");
            while (bytes.hasRemaining()) {
                file.write(bytes);
            }
        }
        Files.move(unfinished, path.resolve(RUN), StandardCopyOption.ATOMIC_MOVE);
    }
}
