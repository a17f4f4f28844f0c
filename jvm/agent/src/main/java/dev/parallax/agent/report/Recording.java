package dev.parallax.agent.report;

import dev.parallax.agent.run.Log;
import dev.parallax.agent.run.Threads;
import dev.parallax.recorder.Durations;
import dev.parallax.recorder.JvmFacts;
import dev.parallax.recorder.JvmFacts.EffectiveOption;
import dev.parallax.recorder.RecordFolder;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicInteger;

/** Writes the record on a thread that wakes up once per interval, and a last time at the end. */
public final class Recording implements Runnable {
    /** Maximum number of events per interval; further ones are counted and dropped. */
    private static final int EVENTS_MAX = 10_000;

    private final List<Source> sources;
    private final long intervalNs;
    private final Map<String, String> meanings = new ConcurrentSkipListMap<>();
    private final JvmFacts facts;
    private final RecordFolder folder;
    private final LogNames places = new LogNames();
    private final ConcurrentLinkedQueue<Event> events = new ConcurrentLinkedQueue<>();
    /** Slots of {@link #events} in use or about to be. */
    private final AtomicInteger waiting = new AtomicInteger();

    private final AtomicInteger lost = new AtomicInteger();
    /** Totals already in the record, by source and log. Holds sources weakly. */
    private Map<Source, Map<String, Durations>> last = new WeakHashMap<>();

    private long intervalBegunNs;
    private volatile boolean isFinished;

    /** Waits for the next interval. */
    private interface Event {
        void write(RecordFolder folder) throws IOException;
    }

    /** Creates the folder of a record. */
    interface Maker {
        RecordFolder make(Path path, JvmFacts facts) throws IOException;
    }

    Recording(List<Source> sources, Path path, Duration interval, Map<String, EffectiveOption> options, Maker maker)
            throws IOException {
        this.sources = sources;
        this.intervalNs = interval.toNanos();
        this.facts = JvmFacts.ofThisJvm(meanings, options);
        this.folder = maker.make(path, facts);
        this.intervalBegunNs = facts.zeroMonotonicNs();
    }

    /**
     * Creates a record; nothing is added to it before {@link #start}.
     *
     * @param sources to record
     * @param path of the folder
     * @param interval length of the intervals
     * @param options all options of the agent
     * @return the record in progress
     * @throws IOException if it cannot be written
     */
    public static Recording begin(
            List<Source> sources, Path path, Duration interval, Map<String, EffectiveOption> options) throws IOException {
        return new Recording(List.copyOf(sources), path, interval, options, RecordFolder::new);
    }

    /** Starts writing. */
    public void start() {
        Threads.start(this, "parallax-record");
    }

    /**
     * Adds an event with the next interval. Safe on any thread.
     *
     * @param atNs from {@link System#nanoTime()}
     * @param kind one word
     * @param text one line
     */
    public void event(long atNs, String kind, String text) {
        long fromZeroNs = fromZero(atNs);
        add(folder -> folder.event(fromZeroNs, kind, text));
    }

    /**
     * Adds a hiccup with the next interval. Safe on any thread.
     *
     * @param atNs when the meter should have woken up, from {@link System#nanoTime()}
     * @param lengthNs how late it was
     * @param causesNs nanoseconds by cause
     * @param text one line
     */
    public void hiccup(long atNs, long lengthNs, Map<String, Long> causesNs, String text) {
        long fromZeroNs = fromZero(atNs);
        add(folder -> folder.hiccup(fromZeroNs, lengthNs, causesNs, text));
    }

    /**
     * Adds a pause with the next interval. Safe on any thread.
     *
     * @param beginNs from {@link System#nanoTime()}
     * @param endNs from the same clock
     * @param cause as named by the JVM; null if unknown
     */
    public void pause(long beginNs, long endNs, String cause) {
        if (endNs - beginNs >= 0 && endNs - facts.zeroMonotonicNs() > 0) {
            long fromZeroNs = fromZero(beginNs);
            add(folder -> folder.pause(fromZeroNs, fromZero(endNs), cause));
        }
    }

    /** For events that began before the record, its start. */
    private long fromZero(long ns) {
        return Math.max(0, ns - facts.zeroMonotonicNs());
    }

    private void add(Event event) {
        if (isFinished) {
            return;
        }
        if (waiting.get() >= EVENTS_MAX) {
            lost.incrementAndGet();
        } else {
            events.add(event);
            waiting.incrementAndGet();
        }
    }

    @Override
    public void run() {
        Threads.repeat("an interval is missing from the record", this::isFinished, () -> {
            Thread.sleep(Math.max(1, intervalNs / 1_000_000));
            write(false);
        });
    }

    private boolean isFinished() {
        return isFinished;
    }

    /** Writes what is left and finishes the record. */
    public void finish() {
        try {
            write(true);
        } catch (Throwable e) {
            Log.once("the record is not finished", e);
        }
    }

    private synchronized void write(boolean isLast) throws IOException {
        if (isFinished) {
            return;
        }
        isFinished = isLast;
        Map<Source, Map<String, Durations>> totals = new HashMap<>();
        for (Source source : sources) {
            for (Source part : source.parts()) {
                totals.put(part, totals(part));
            }
        }
        long nowNs = System.nanoTime();
        Map<String, Durations> interval = new HashMap<>();
        totals.forEach((part, logs) -> logs.forEach((log, total) -> {
            Durations before = last.getOrDefault(part, Map.of()).getOrDefault(log, Durations.NONE);
            interval.merge(log, total.since(before), Durations::plus);
        }));
        // Allocated earlier, so that no allocation can fail between writing the interval and remembering that it was
        // written.
        Map<Source, Map<String, Durations>> next = new WeakHashMap<>(totals);
        boolean isFull = !folder.append(intervalBegunNs - facts.zeroMonotonicNs(), nowNs - intervalBegunNs, interval);
        if (!isFull) {
            last = next;
            intervalBegunNs = nowNs;
        }
        writeEvents();
        if (isLast || isFull) {
            folder.finish(intervalBegunNs - facts.zeroMonotonicNs());
            folder.close();
            isFinished = true;
        }
        if (isFull) {
            Log.line("the record ends: it has reached the maximum size that can be read; choose a longer interval");
        }
    }

    /** Totals of one source by log. Two pools with the same name are added up. */
    private Map<String, Durations> totals(Source source) {
        Map<String, Durations> totals = new HashMap<>();
        source.read(new Reader() {
            @Override
            public void durations(Series series, String label, Durations total) {
                if (total.count() + total.unusable() > 0) {
                    String placed = places.label(series, label);
                    String log = series.log(placed);
                    totals.merge(log, total, Durations::plus);
                    mean(log, series.meaning(), placed);
                }
            }

            @Override
            public void number(Series series, String label, long value) {
                // A record holds durations only.
            }
        });
        return totals;
    }

    /** Some series share a name; their descriptions are then combined. */
    private void mean(String log, String meaning, String label) {
        String of = label.isEmpty() ? "" : ", of " + label;
        meanings.merge(log, meaning + of, (known, its) -> known.contains(meaning) || !known.endsWith(of)
                ? known
                : known.substring(0, known.length() - of.length()) + "; or " + its);
    }

    private void writeEvents() throws IOException {
        for (int most = waiting.get(); most > 0; most--) {
            Event event = events.peek();
            if (event == null) {
                // Its slot is reserved and it is about to arrive: it goes to the next interval.
                break;
            }
            event.write(folder);
            // Removed after writing; an event that could not be written goes to the next interval.
            events.poll();
            waiting.decrementAndGet();
        }
        int gone = lost.get();
        if (gone > 0) {
            folder.event(intervalBegunNs - facts.zeroMonotonicNs(), "lost", "events of the interval: " + gone);
            lost.addAndGet(-gone);
        }
    }
}
