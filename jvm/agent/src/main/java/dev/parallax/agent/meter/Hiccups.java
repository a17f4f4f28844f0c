package dev.parallax.agent.meter;

import dev.parallax.agent.AgentLoader;
import dev.parallax.agent.report.Reader;
import dev.parallax.agent.report.Series;
import dev.parallax.agent.report.Source;
import dev.parallax.agent.run.Log;
import dev.parallax.agent.run.Threads;
import dev.parallax.pauses.Pause;
import dev.parallax.pauses.PauseClock;
import dev.parallax.pauses.PauseStream;
import dev.parallax.pauses.ThreadStall;
import dev.parallax.recorder.Recorder;
import java.time.Duration;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;

/** The hiccup meters of this JVM, their evidence and results. */
public final class Hiccups implements Source {
    /** The flight recorder delivers events after a second, and may take another. */
    private static final long RECORDER_NS = 2_500_000_000L;

    /** A pause delivered later than this is too late for its hiccup. */
    private static final Duration PATIENCE = Duration.ofSeconds(1);

    private static final long ALONE_NS = 300_000_000;
    private static final long LOOK_MS = 200;
    private static final long END_MS = 100;

    private final Listener listener;
    private final Verdicts verdicts;
    private final ContinueSignals continues = ContinueSignals.listen();
    private final Meter meter;
    private Thread meterThread;
    private Optional<Canary> canary = Optional.empty();
    private Optional<Companion> companion = Optional.empty();
    private final boolean withCauses;
    private volatile boolean isOver;

    /** Used by the judging thread only. */
    private boolean hasBegun;

    private Optional<PauseStream> stream = Optional.empty();
    private final Recorder pauseLengths = new Recorder();
    private final Spans pauses = new Spans();
    private final Spans pinned = new Spans();
    private final Spans stalls = new Spans();
    private final Spans control = new Spans();

    /**
     * What to measure.
     *
     * @param apartNs period of the meters' wake-ups
     * @param withCanary whether to run a virtual thread too
     * @param withCauses whether to use the flight recorder
     * @param withControl whether to start an idle companion JVM
     */
    public record Wish(long apartNs, boolean withCanary, boolean withCauses, boolean withControl) {}

    /** Receives events on the agent's threads, a few seconds late. */
    public interface Listener {
        /**
         * A hiccup of a millisecond or more.
         *
         * @param hiccup with its causes
         */
        void hiccup(Hiccup hiccup);

        /**
         * A pause of the JVM.
         *
         * @param beginNs from {@link System#nanoTime()}
         * @param endNs from the same clock
         * @param cause as named by the JVM; null if unknown
         */
        void pause(long beginNs, long endNs, String cause);
    }

    private Hiccups(Wish wish, PauseClock clock, Listener listener) {
        this.listener = listener;
        this.withCauses = wish.withCauses;
        verdicts = new Verdicts(
                wish.withCauses ? RECORDER_NS : ALONE_NS, continues, new Verdicts.Evidence(pauses, pinned, stalls, control), listener::hiccup);
        meter = new Meter(wish.apartNs, clock, verdicts::add);
    }

    private void start(Wish wish, AgentLoader agent, PauseClock clock) {
        meterThread = Threads.start(meter, Meter.THREAD);
        Threads.start(this::judge, "parallax-verdicts");
        canary = wish.withCanary ? Canary.start(wish.apartNs, clock, verdicts::add) : Optional.empty();
        companion = wish.withControl ? Companion.start(agent, wish.apartNs, control) : Optional.empty();
    }

    /**
     * Starts the meters. Unavailable parts are left out and logged; if no thread can be created it throws, and nothing
     * runs.
     *
     * @param wish what to measure
     * @param agent the agent's loader
     * @param clock of this JVM's pauses
     * @param listener of hiccups and pauses
     * @return the running meters
     */
    public static Hiccups start(Wish wish, AgentLoader agent, PauseClock clock, Listener listener) {
        Hiccups hiccups = new Hiccups(wish, clock, listener);
        try {
            hiccups.start(wish, agent, clock);
            return hiccups;
        } catch (Throwable e) {
            hiccups.stop();
            throw e;
        }
    }

    /**
     * Runs the meter of the companion process.
     *
     * @param apartNs period of its wake-ups
     */
    public static void companion(long apartNs) {
        Companion.look(apartNs);
    }

    private Optional<PauseStream> startStream() {
        try {
            return Optional.of(PauseStream.start(PATIENCE, new PauseStream.Listener() {
                @Override
                public void pause(Pause pause) {
                    pauseLengths.record(pause.totalNs());
                    pauses.add(pause.beginNs(), pause.endNs(), text(pause));
                    String cause = pause.collection().orElse(pause.operation());
                    listener.pause(pause.beginNs(), pause.endNs(), cause.isEmpty() ? null : cause);
                }

                @Override
                public void stall(ThreadStall stall) {
                    if (stall.kind() == ThreadStall.Kind.PINNED) {
                        pinned.add(stall.beginNs(), stall.beginNs() + stall.totalNs(), "");
                    } else if (stall.thread().equals(Meter.THREAD)) {
                        stalls.add(stall.beginNs(), stall.beginNs() + stall.totalNs(), "");
                    }
                }
            }));
        } catch (PauseClock.Unavailable | LinkageError | OutOfMemoryError e) {
            if (!isEnding()) {
                Log.line("causes of pauses are not available: " + e.getMessage());
            }
            return Optional.empty();
        }
    }

    /** A JVM that exits before the recorder has started misses nothing of interest. */
    private static boolean isEnding() {
        try {
            Runtime.getRuntime().removeShutdownHook(new Thread());
            return false;
        } catch (IllegalStateException ending) {
            return true;
        }
    }

    private static String text(Pause pause) {
        String what = pause.operation().isEmpty() ? "safepoint" : pause.operation();
        String of = pause.collection().map(collection -> ", " + collection).orElse("");
        String last = pause.lastToStop().map(thread -> ", last to stop: " + thread).orElse("");
        return String.format(
                Locale.ROOT, "%s %.1f ms, %.1f of it to stop%s%s",
                what, pause.totalNs() / 1e6, pause.syncNs() / 1e6, of, last);
    }

    private void judge() {
        Threads.repeat("cannot report hiccups", () -> isOver, this::judgeOnce);
        stream.ifPresent(PauseStream::close);
    }

    /** The recorder takes half a second to start, which must not delay the application. It is started once. */
    private void judgeOnce() throws InterruptedException {
        if (!hasBegun) {
            Verdicts.warmUp();
            // Not earlier: there may be no memory for it.
            hasBegun = true;
            stream = withCauses ? startStream() : Optional.empty();
        }
        Thread.sleep(LOOK_MS);
        verdicts.judge(false);
    }

    /** Stops everything without waiting and without reporting anything more. */
    public void stop() {
        isOver = true;
        continues.end();
        meter.end();
        LockSupport.unpark(meterThread);
        canary.ifPresent(bird -> {
            bird.end();
            LockSupport.unpark(bird.thread());
        });
        companion.ifPresent(Companion::end);
    }

    /** Judges what is left with what is known now, and ends what must not outlive this JVM. */
    public void finish() {
        meter.end();
        canary.ifPresent(Canary::end);
        await(meterThread);
        canary.ifPresent(bird -> await(bird.thread()));
        verdicts.judge(true);
        companion.ifPresent(Companion::end);
    }

    /** Each meter reports its last hiccup as it ends. One without a CPU or carrier is not waited for long. */
    private static void await(Thread looking) {
        LockSupport.unpark(looking);
        try {
            looking.join(END_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public void read(Reader reader) {
        reader.durations(Series.HICCUP, "", meter.lateness().total());
        read(reader, Series.HICCUP_PART, verdicts.parts(false));
        canary.ifPresent(bird -> {
            reader.durations(Series.CANARY, "", bird.lateness().total());
            read(reader, Series.CANARY_PART, verdicts.parts(true));
        });
        companion.ifPresent(other -> reader.durations(Series.CONTROL, "", other.hiccups().total()));
        reader.durations(Series.PAUSE, "", pauseLengths.total());
    }

    private static void read(Reader reader, Series series, Map<Cause, Recorder> parts) {
        parts.forEach((cause, part) -> reader.durations(series, cause.title(), part.total()));
    }
}
