package dev.parallax.springboot;

import dev.parallax.recorder.Catalog;
import dev.parallax.recorder.Durations;
import dev.parallax.recorder.Family;
import dev.parallax.recorder.JvmFacts;
import dev.parallax.recorder.RecordFolder;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.springframework.context.SmartLifecycle;

/**
 * Writes the durations of a catalog as a run record, interval after interval, from the application's start to its stop.
 * Each start creates a separate directory, named by its time and process, within the configured one. Counts and gauges
 * are not included.
 *
 * <p>Cost: a thread that wakes once per interval and reads all series. A directory that cannot be written is reported
 * once.
 */
final class RunRecord implements SmartLifecycle, Runnable {
    private static final DateTimeFormatter STAMP = DateTimeFormatter.ofPattern("yyyyMMdd-HHmmss-SSS").withZone(ZoneOffset.UTC);

    /** Limit within a record's 256 logs; a catalog that grows without bound has unsuitable labels. */
    private static final int LOGS_MAX = 200;

    /** Maximum length of a log's name, to which a number may be added. */
    private static final int NAME_MAX = 90;

    private static final long REST_NS = 1_000_000_000;

    private final Catalog catalog;
    private final Path parent;
    private final Duration interval;
    private final Maker maker;

    /** The meaning of each log, by its name: grows, and is written again at the end. */
    private final Map<String, String> series = new ConcurrentSkipListMap<>();

    private final Map<String, String> names = new HashMap<>();
    private Map<String, Durations> before = Map.of();
    private RecordFolder folder;
    private long zeroNs;
    private long lastNs;
    private boolean hasFailed;
    private boolean isFull;
    private boolean hasEnded;
    private CountDownLatch end;
    private volatile Thread thread;

    /** Creates the directory of a record. */
    interface Maker {
        RecordFolder make(Path path, JvmFacts facts) throws IOException;
    }

    RunRecord(Catalog catalog, Path parent, Duration interval) {
        this(catalog, parent, interval, RecordFolder::new);
    }

    RunRecord(Catalog catalog, Path parent, Duration interval, Maker maker) {
        this.catalog = catalog;
        this.parent = parent;
        this.interval = interval;
        this.maker = maker;
    }

    @Override
    public synchronized void start() {
        if (thread != null) {
            return;
        }
        try {
            JvmFacts facts = JvmFacts.ofThisJvm(series);
            String name = "jvm-" + STAMP.format(facts.zero()) + "-" + ProcessHandle.current().pid();
            before = read();
            folder = maker.make(parent.resolve(name), facts);
            hasEnded = false;
            zeroNs = facts.zeroMonotonicNs();
            lastNs = 0;
            end = new CountDownLatch(1);
            Thread started = new Thread(this, "parallax-record");
            started.setDaemon(true);
            started.start();
            thread = started;
        } catch (IOException | RuntimeException e) {
            MeasuringPostProcessor.warn("no run record in " + parent, e);
        }
    }

    @Override
    public void run() {
        boolean isOver = false;
        while (!isOver) {
            try {
                isOver = end.await(interval.toMillis(), TimeUnit.MILLISECONDS);
                if (!isOver) {
                    write();
                }
            } catch (InterruptedException e) {
                // Nothing should interrupt this thread; if something does, what is written so far is a valid record.
                return;
            } catch (OutOfMemoryError e) {
                // An allocation that fails makes the JVM stop all threads and look for memory, so do not retry too
                // soon.
                LockSupport.parkNanos(REST_NS);
            }
        }
    }

    /** An interval: since the previous one, or the start. */
    synchronized void write() {
        if (hasEnded) {
            return;
        }
        try {
            long nowNs = System.nanoTime() - zeroNs;
            Map<String, Durations> now = read();
            Map<String, Durations> logs = new LinkedHashMap<>();
            now.forEach((name, durations) -> logs.put(name, durations.since(before.getOrDefault(name, Durations.NONE))));
            if (folder.append(lastNs, nowNs - lastNs, logs)) {
                before = now;
                lastNs = nowNs;
            } else {
                endFull();
            }
        } catch (IOException | RuntimeException | OutOfMemoryError e) {
            // What could not be written now is in the next interval.
            if (!hasFailed) {
                hasFailed = say("lacks an interval, which is within the next", e);
            }
        }
    }

    /** Whether the message could be logged: if memory is missing, it may be missing for this too. */
    private boolean say(String what, Object why) {
        try {
            MeasuringPostProcessor.warn("the run record in " + parent + " " + what, why);
            return true;
        } catch (OutOfMemoryError e) {
            return false;
        }
    }

    private void endFull() throws IOException {
        folder.finish(lastNs);
        folder.close();
        hasEnded = true;
        end.countDown();
        say("ends", "it has reached the maximum size that can be read; choose a longer interval");
    }

    private Map<String, Durations> read() {
        Map<String, Durations> logs = new LinkedHashMap<>();
        for (Family family : catalog.read()) {
            for (Family.Point point : family.points()) {
                if (point instanceof Family.Histogram spread && spread.distribution() instanceof Durations durations) {
                    String name = name(family, spread.labels());
                    if (name != null) {
                        logs.put(name, durations);
                    }
                }
            }
        }
        return logs;
    }

    /** The log of a series; null if there are too many. */
    private String name(Family family, Map<String, String> labels) {
        String what = family.name() + labels;
        String known = names.get(what);
        if (known != null) {
            return known;
        }
        if (names.size() >= LOGS_MAX) {
            if (!isFull) {
                MeasuringPostProcessor.warn("the run record in " + parent, "has " + LOGS_MAX + " logs, and no more");
            }
            isFull = true;
            return null;
        }
        // Readers separate a series from its labels at the first `-` of a name, and the first `, of ` of its meaning.
        StringBuilder words = new StringBuilder(family.name().replace('-', '_'));
        labels.values().stream().filter(value -> !value.isEmpty()).forEach(value -> words.append('-').append(value));
        String name = words.toString().replaceAll("[^a-zA-Z0-9_.-]", "_");
        name = name.substring(0, Math.min(name.length(), NAME_MAX));
        if (!Character.isLetter(name.charAt(0))) {
            name = "x" + name.substring(1);
        }
        String free = name;
        for (int n = 2; series.containsKey(free) || free.endsWith(".hlog"); n++) {
            free = name + "_" + n;
        }
        names.put(what, free);
        String of = labels.toString();
        String meaning = family.help().replaceAll(",+ of ", " of ");
        series.put(free, meaning + (labels.isEmpty() ? "" : ", of " + of.substring(1, of.length() - 1)));
        return free;
    }

    @Override
    public void stop() {
        Thread stopped = thread;
        if (stopped == null) {
            return;
        }
        thread = null;
        // Neither by an interrupt nor with one pending: it would close the files that are written to.
        boolean isInterrupted = Thread.interrupted();
        end.countDown();
        LockSupport.unpark(stopped);
        try {
            stopped.join();
        } catch (InterruptedException e) {
            isInterrupted = true;
        }
        write();
        try (RecordFolder done = folder) {
            done.finish(lastNs);
        } catch (IOException | RuntimeException | OutOfMemoryError e) {
            say("is not finished", e);
        }
        if (isInterrupted) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public boolean isRunning() {
        return thread != null;
    }

    /** The first to start and the last to stop. */
    @Override
    public int getPhase() {
        return Integer.MIN_VALUE;
    }
}
