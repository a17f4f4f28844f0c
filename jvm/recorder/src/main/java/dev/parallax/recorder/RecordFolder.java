package dev.parallax.recorder;

import java.io.Closeable;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * A run record of the kind {@code jvm} under way: a folder that {@code parallax report} and {@code explain} read, and of
 * which a crash at any moment loses at most the last interval.
 *
 * <p>The histograms of an interval are written first and its line of {@code series.ndjson} last: that line commits it. A
 * write that fails is taken back, be it for want of memory. One thread at a time; nothing is synced to the disk.
 */
public final class RecordFolder implements Closeable {
    private static final String RUN = "run.json";
    private static final String UNFINISHED = "run.json.unfinished";
    private static final String SERIES = "series.ndjson";
    private static final String EVENTS = "events.ndjson";
    private static final String PAUSE = "pause";
    private static final String HICCUP = "hiccup";
    private static final String LOST = "lost";
    private static final String TOO_LONG = "their file is as long as can be read";
    private static final int LOGS_MAX = 256;

    /** What readers take of a file: who finds more refuses the record. */
    private static final long SERIES_BYTES_MAX = 256L << 20;

    private static final long EVENTS_BYTES_MAX = 64L << 20;

    /** Of the events' bytes, for the one that says that there are no more. */
    private static final long LAST_EVENT_BYTES_MAX = 200;

    private final Path path;
    private final JvmFacts facts;
    private final long seriesBytesMax;
    private final long eventsBytesMax;
    private final Commits commits;
    private final Set<String> names = new HashSet<>();
    private long lastStartNs = -1;
    private long lostEvents;

    /**
     * Makes the folder, with its parents.
     *
     * @param path where; a folder that holds no record
     * @param facts what the record is of
     * @throws IOException when there is a record already, or nothing can be written
     */
    public RecordFolder(Path path, JvmFacts facts) throws IOException {
        this(path, facts, SERIES_BYTES_MAX, EVENTS_BYTES_MAX);
    }

    RecordFolder(Path path, JvmFacts facts, long seriesBytesMax, long eventsBytesMax) throws IOException {
        this.path = path;
        this.facts = facts;
        this.seriesBytesMax = seriesBytesMax;
        this.eventsBytesMax = eventsBytesMax;
        Files.createDirectories(path);
        if (Files.exists(path.resolve(RUN))) {
            throw new FileAlreadyExistsException(path + " holds a record already; choose another folder");
        }
        commits = new Commits(path);
        commits.claim(SERIES);
        try {
            replaceDocument("running", null);
        } catch (IOException | RuntimeException | Error e) {
            takeBackClaim();
            throw e;
        }
    }

    /** So that the folder can hold a record later. */
    private void takeBackClaim() {
        try {
            commits.close();
            // The claim last: who makes it next has a folder without a document.
            for (String name : List.of(UNFINISHED, RUN, SERIES)) {
                Files.deleteIfExists(path.resolve(name));
            }
        } catch (IOException | RuntimeException | Error e) {
            // The failure worth telling is the first one.
        }
    }

    /**
     * Adds an interval.
     *
     * @param startNs when it began, from the record's zero; later than that of the one before
     * @param lengthNs how long it was
     * @param logs what was recorded in it, by the log's name; logs without a duration are left out
     * @return whether it is in the folder; where it is not, the record is as long as can be read, and is to be finished with
     *     the interval before
     * @throws IOException when it cannot be written, as on a full disk: then it is not in the folder, and the next one
     *     may be
     */
    public boolean append(long startNs, long lengthNs, Map<String, Durations> logs) throws IOException {
        if (startNs <= lastStartNs || lengthNs < 0) {
            throw new IllegalArgumentException("an interval at " + startNs + " ns after one at " + lastStartNs + " ns");
        }
        Map<String, Durations> sorted = new TreeMap<>(logs);
        checkNames(sorted);
        String line = seriesLine(startNs, lengthNs, sorted);
        commits.takeBack();
        // All of it is ASCII.
        if (commits.length(SERIES) + line.length() > seriesBytesMax) {
            return false;
        }
        commits.whole(() -> {
            writeHistograms(startNs, lengthNs, sorted);
            commits.add(SERIES, line);
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
        commits.add(file, commits.length(file) == 0 ? HlogLines.header(facts.zero()) + line : line);
    }

    private void checkNames(Map<String, Durations> logs) throws IOException {
        for (Map.Entry<String, Durations> log : logs.entrySet()) {
            String name = log.getKey();
            if (log.getValue().count() == 0 || names.contains(name)) {
                continue;
            }
            boolean fits = name.matches("[a-zA-Z][a-zA-Z0-9_.-]{0,99}") && !name.endsWith(".hlog");
            if (!fits || names.size() == LOGS_MAX) {
                throw new IOException("no log of the name " + name + ": it has to begin with a letter and to consist of at"
                        + " most 100 letters, digits and _ - . ; and there are at most " + LOGS_MAX);
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
     * Adds an event. Where there are as many as can be read, one of the kind `lost` says so, and further ones are counted.
     *
     * @param atNs when, from the record's zero
     * @param kind what it is, one word
     * @param text for people, one line
     * @throws IOException when it cannot be written; then it is not in the folder
     */
    public void event(long atNs, String kind, String text) throws IOException {
        write(event(atNs, kind, text, null));
    }

    /**
     * Adds a pause: a stretch in which no thread of the application ran. `parallax explain` finds the requests in it.
     *
     * @param beginNs from the record's zero to the wish to stop all threads
     * @param endNs from the record's zero until they ran again
     * @param cause as the JVM names it; null where it did not say
     * @throws IOException when it cannot be written; then it is not in the folder
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
     * Adds a hiccup: a stretch in which a thread of the application would not have run. `parallax report` tells the longest.
     *
     * @param atNs from the record's zero to when the meter was due
     * @param lengthNs how late it was
     * @param causesNs what of that had which cause
     * @param text one line, for people
     * @throws IOException when it cannot be written; then it is not in the folder
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

    /** @param what its figures, under the name of its kind; null where it has none */
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
            commits.takeBack();
            long bytes = commits.length(EVENTS) + line.getBytes(StandardCharsets.UTF_8).length;
            if (bytes + LAST_EVENT_BYTES_MAX <= eventsBytesMax) {
                commits.whole(() -> commits.add(EVENTS, line));
                return;
            }
            long atNs = (Long) event.get("at_ns");
            String last = Json.of(event(atNs, LOST, "no more events from here on: " + TOO_LONG, null)) + "\n";
            commits.whole(() -> commits.add(EVENTS, last));
        }
        lostEvents++;
    }

    /**
     * Ends the record.
     *
     * @param elapsedNs from the record's zero to the end of the last interval
     * @throws IOException when it cannot be written; the record stands as one that was cut off
     */
    public void finish(long elapsedNs) throws IOException {
        commits.takeBack();
        replaceDocument("finished", elapsedNs);
    }

    @Override
    public void close() throws IOException {
        commits.close();
    }

    private void replaceDocument(String state, Long elapsedNs) throws IOException {
        Path unfinished = path.resolve(UNFINISHED);
        Map<String, Object> document = facts.document(state, elapsedNs);
        if (lostEvents > 0) {
            document.put("missing", List.of(new TreeMap<>(Map.of("what", "events: " + lostEvents, "why", TOO_LONG))));
        }
        Files.writeString(unfinished, Json.of(document) + "\n");
        Files.move(unfinished, path.resolve(RUN), StandardCopyOption.ATOMIC_MOVE);
    }
}
