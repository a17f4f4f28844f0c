package dev.parallax.pauses;

import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.function.Supplier;
import jdk.jfr.Event;
import jdk.jfr.FlightRecorder;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingStream;

/**
 * Reports the pauses of this JVM one by one with their causes, from the flight recorder.
 * <p>
 * Exact, but late: the recorder delivers its events once per second, so a pause is reported up to a second after it
 * ended, or when the next second is over. The recorder reports which collection it belongs to when that is over:
 * seconds later for a concurrent collector. Such a pause, and those after it, wait for that as long as requested, by
 * default a minute; a pause is reported without its collection if that takes longer, or if the recorder lost it.
 * <p>
 * It costs a recording on disk and some milliseconds of CPU per second, and reports causes; {@link PauseClock} reports
 * the length, immediately. Works with any collector of HotSpot.
 */
public final class PauseStream implements AutoCloseable {
    /** A shorter stall of a single thread is less than the time it takes to deliver its event. */
    private static final Duration LEAST_STALL = Duration.ofMillis(1);

    /** Longer than most collections. */
    private static final Duration PATIENCE = Duration.ofMinutes(1);

    /** The two clocks drift apart by far less than a pause's own error in this time. */
    private static final Duration PAIRING_PERIOD = Duration.ofSeconds(1);

    /** An allocation that fails makes the JVM stop all threads and look for memory, so do not retry too soon. */
    private static final long REST_MS = 1_000;

    private final RecordingStream recording;
    private final Listener listener;
    private final PauseJoin join;
    private final Thread thread = new Thread(this::run, "parallax-pause-stream");
    private Optional<ClockPair.Reading> pair = Optional.empty();
    private long droppedReported;
    /** Called by the recorder's own thread: the recorder ignores events that a stream's thread itself emits. */
    private final Runnable pairing = this::pairClocks;

    /** Receives the events. Called by one thread of the stream; what it throws is passed to {@link #failed}. */
    public interface Listener {
        /**
         * A pause has ended.
         *
         * @param pause with its cause.
         */
        void pause(Pause pause);

        /**
         * A thread was stalled on its own. Stalls of the stream's first second may be left out.
         *
         * @param stall with its kind.
         */
        default void stall(final ThreadStall stall) {
        }

        /**
         * Something was not reported.
         *
         * @param line what and why.
         */
        default void failed(final String line) {
        }
    }

    private PauseStream(final RecordingStream recording, final Duration patience, final Listener listener) {
        this.recording = recording;
        this.join = new PauseJoin(patience.toNanos());
        this.listener = listener;
    }

    /**
     * Starts a stream whose pauses wait up to a minute for their collections.
     *
     * @param listener receives the events.
     * @return the stream, to be closed.
     * @throws PauseClock.Unavailable if this JVM has no flight recorder or it cannot record; the message contains the
     * reason.
     */
    public static PauseStream start(final Listener listener) throws PauseClock.Unavailable {
        return start(PATIENCE, listener);
    }

    /**
     * Starts a stream.
     *
     * @param patience how long a pause may wait for its collection; if short, some are reported without it.
     * @param listener receives the events.
     * @return the stream, to be closed.
     * @throws PauseClock.Unavailable if this JVM has no flight recorder or it cannot record; the message contains the
     * reason.
     */
    public static PauseStream start(final Duration patience, final Listener listener) throws PauseClock.Unavailable {
        PauseStream stream = null;
        try {
            stream = new PauseStream(new RecordingStream(), patience, listener);
            stream.subscribe();
            stream.startThread();
            return stream;
        } catch (final RuntimeException | LinkageError | OutOfMemoryError e) {
            if (stream != null) {
                stream.endRecording();
            }
            throw new PauseClock.Unavailable("the flight recorder does not start: " + e);
        }
    }

    /** Not {@code startAsync}, whose thread is not a daemon and would keep an application from exiting. */
    private void startThread() {
        thread.setDaemon(true);
        thread.start();
    }

    private void run() {
        try {
            recording.start();
        } catch (final RuntimeException e) {
            listener.failed("the flight recorder ended: " + e);
        } finally {
            endRecordingAtLast();
        }
        try {
            reportWith(join::takeWhole);
        } catch (final RuntimeException e) {
            listener.failed("the last pauses were not told: " + e);
        }
    }

    /** Whatever ended the stream: a recording that nobody reads would continue to fill the disk. */
    private void endRecordingAtLast() {
        while (true) {
            try {
                endRecording();
                return;
            } catch (final OutOfMemoryError e) {
                // The cause may be the one that ended the stream. There may be memory later.
                rest();
            }
        }
    }

    private static void rest() {
        try {
            Thread.sleep(REST_MS);
        } catch (final InterruptedException e) {
            // Then it pauses for less time.
        }
    }

    private void endRecording() {
        FlightRecorder.removePeriodicEvent(pairing);
        recording.close();
    }

    private void subscribe() {
        onSafepoint("jdk.SafepointBegin", (id, event) -> join.begin(id, span(event)));
        onSafepoint("jdk.SafepointStateSynchronization",
            (id, event) -> join.synchronization(id, span(event), event.getInt("runningThreadCount")));
        onSafepoint("jdk.ExecuteVMOperation", (id, event) -> join.operation(id, event.getString("operation")));
        onSafepoint("jdk.SafepointEnd", (id, event) -> join.end(id, span(event)));
        on("jdk.GCPhasePause", Duration.ZERO,
            event -> join.phase(event.getInt("gcId"), span(event), event.getString("name")));
        on("jdk.GarbageCollection", Duration.ZERO,
            event -> join.collection(
                event.getInt("gcId"), span(event), event.getString("name") + ": " + event.getString("cause")));
        on("jdk.SafepointLatency", LEAST_STALL, event -> join.latency(span(event), threadOf(event)));
        on("jdk.ZAllocationStall", LEAST_STALL, event -> stall(ThreadStall.Kind.ALLOCATION, event));
        on("jdk.VirtualThreadPinned", LEAST_STALL, event -> stall(ThreadStall.Kind.PINNED, event));
        on("jdk.DataLoss", Duration.ZERO,
            event -> listener.failed("the flight recorder lost " + event.getLong("amount") + " bytes of events"));
        recording.enable(ClockPair.class).withPeriod(PAIRING_PERIOD);
        FlightRecorder.addPeriodicEvent(ClockPair.class, pairing);
        recording.onEvent(ClockPair.NAME, event -> pair = Optional.of(ClockPair.read(event)));
        recording.onFlush(this::flush);
        recording.onError(e -> listener.failed("an event of the flight recorder was not taken: " + e));
    }

    /** Operations outside of safepoints, such as handshakes, have no safepoint number. */
    private void onSafepoint(final String name, final BiConsumer<Long, RecordedEvent> take) {
        on(name, Duration.ZERO, event -> {
            if (!event.hasField("safepoint") || event.getBoolean("safepoint")) {
                take.accept(event.getLong("safepointId"), event);
            }
        });
    }

    /** The recorder ignores names that this JVM does not know. */
    private void on(final String name, final Duration threshold, final Consumer<RecordedEvent> take) {
        recording.enable(name).withThreshold(threshold).withoutStackTrace();
        recording.onEvent(name, take);
    }

    private void flush() {
        reportWith(() -> join.takeEnded(System.nanoTime() - pair.orElseThrow().aheadNs()));
    }

    private void reportWith(final Supplier<List<Pause>> take) {
        if (pair.isPresent()) {
            take.get().forEach(this::report);
            if (join.dropped() > droppedReported) {
                listener.failed((join.dropped() - droppedReported) + " pauses were told in part only, and are left out");
                droppedReported = join.dropped();
            }
        }
    }

    private void pairClocks() {
        ClockPair.emit();
    }

    private void report(final Pause pause) {
        listener.pause(new Pause(
            pause.safepointId(), nanoTime(pause.beginNs()), pause.syncNs(), pause.totalNs(),
            pause.operation(), pause.collection(), pause.runningThreads(), pause.lastToStop()));
    }

    private void stall(final ThreadStall.Kind kind, final RecordedEvent event) {
        if (pair.isPresent()) {
            final PauseJoin.Span span = span(event);
            listener.stall(new ThreadStall(
                kind, threadOf(event), nanoTime(span.beginNs()), span.endNs() - span.beginNs()));
        }
    }

    private long nanoTime(final long recorderNs) {
        return pair.map(known -> recorderNs + known.aheadNs()).orElseThrow();
    }

    private static PauseJoin.Span span(final RecordedEvent event) {
        return new PauseJoin.Span(epochNs(event.getStartTime()), epochNs(event.getEndTime()));
    }

    private static long epochNs(final Instant instant) {
        return instant.getEpochSecond() * 1_000_000_000 + instant.getNano();
    }

    private static String threadOf(final RecordedEvent event) {
        if (event.getThread() == null) {
            return "";
        }
        final String name = event.getThread().getJavaName();
        return name == null ? "" : name;
    }

    /**
     * Ends the recording. Pauses that wait for their collections are reported without them; those of the last second,
     * which the recorder has not delivered yet, are not reported. The listener is not called after this returns, unless
     * the listener itself closes, or the closing thread is interrupted.
     */
    @Override
    public void close() {
        endRecording();
        if (Thread.currentThread() != thread) {
            try {
                thread.join();
            } catch (final InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /**
     * An event of our own, stamped by the recorder between two readings of {@link System#nanoTime}. The recorder's
     * clock may be the CPU's counter and need not agree with the wall clock; this relates them, to within half of the
     * time between the two readings, some tens of nanoseconds if nothing comes between.
     */
    @Name(ClockPair.NAME)
    @Label("Clock Pair")
    @StackTrace(false)
    static final class ClockPair extends Event {
        static final String NAME = "dev.parallax.ClockPair";

        @Label("nanoTime at the event's beginning")
        long nanoTime;

        /** By how much {@code nanoTime} is ahead of the recorder's clock. */
        record Reading(long aheadNs) {
        }

        static void emit() {
            final ClockPair event = new ClockPair();
            final long before = System.nanoTime();
            event.begin();
            final long after = System.nanoTime();
            event.nanoTime = before + (after - before) / 2;
            event.commit();
        }

        static Reading read(final RecordedEvent event) {
            return new Reading(event.getLong("nanoTime") - epochNs(event.getStartTime()));
        }
    }
}
