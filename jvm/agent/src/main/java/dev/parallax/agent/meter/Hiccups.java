package dev.parallax.agent.meter;

import dev.parallax.agent.AgentLoader;
import dev.parallax.agent.report.Reader;
import dev.parallax.agent.report.Series;
import dev.parallax.agent.report.Source;
import dev.parallax.agent.run.Say;
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

/** The meters of this JVM, what they know, and what came of it. */
public final class Hiccups implements Source {
    /** The flight recorder tells of a second when it is over, and may take another one. */
    private static final long RECORDER_NS = 2_500_000_000L;

    /** A pause that is not told by then comes too late for its hiccup; a second is what is left of that. */
    private static final Duration PATIENCE = Duration.ofSeconds(1);

    private static final long ALONE_NS = 300_000_000;
    private static final long LOOK_MS = 200;
    private static final long END_MS = 100;

    private final Listener listener;
    private final Verdicts verdicts;
    private final Continues continues = Continues.listen();
    private final Meter meter;
    private Thread meterThread;
    private Optional<Canary> canary = Optional.empty();
    private Optional<Companion> companion = Optional.empty();
    private final boolean withCauses;
    private volatile boolean isOver;

    /** Of the thread that judges. */
    private boolean hasBegun;

    private Optional<PauseStream> stream = Optional.empty();
    private final Recorder pauseLengths = new Recorder();
    private final Spans pauses = new Spans();
    private final Spans pinned = new Spans();
    private final Spans stalls = new Spans();
    private final Spans control = new Spans();

    /**
     * What is wanted.
     *
     * @param apartNs how often the meters look
     * @param withCanary whether a virtual thread does as well
     * @param withCauses whether the flight recorder is asked
     * @param withControl whether an idle JVM is started
     */
    public record Wish(long apartNs, boolean withCanary, boolean withCauses, boolean withControl) {}

    /** Is told what happens, by threads of ours, some seconds late. */
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
         * @param beginNs of {@link System#nanoTime()}
         * @param endNs of the same clock
         * @param cause as the JVM names it; null where it does not say
         */
        void pause(long beginNs, long endNs, String cause);
    }

    private Hiccups(Wish wish, PauseClock clock, Listener listener) {
        this.listener = listener;
        this.withCauses = wish.withCauses;
        verdicts = new Verdicts(
                wish.withCauses ? RECORDER_NS : ALONE_NS, continues, new Verdicts.Told(pauses, pinned, stalls, control), listener::hiccup);
        meter = new Meter(wish.apartNs, clock, verdicts::add);
    }

    private void start(Wish wish, AgentLoader agent, PauseClock clock) {
        meterThread = Threads.start(meter, Meter.THREAD);
        Threads.start(this::judge, "parallax-verdicts");
        canary = wish.withCanary ? Canary.start(wish.apartNs, clock, verdicts::add) : Optional.empty();
        companion = wish.withControl ? Companion.start(agent, wish.apartNs, control) : Optional.empty();
    }

    /**
     * Starts the meters. What is not to be had is left out, with a line; where there are no threads to be had, it throws,
     * and nothing runs.
     *
     * @param wish what is wanted
     * @param agent the agent's loader
     * @param clock of this JVM's pauses
     * @param listener of hiccups and pauses
     * @return what is measured
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
     * What the control process does.
     *
     * @param apartNs how often it looks
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
                Say.line("causes of pauses are not available: " + e.getMessage());
            }
            return Optional.empty();
        }
    }

    /** A JVM that ends before the recorder has started loses nothing that anybody would miss. */
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
        Threads.again("cannot report hiccups", () -> isOver, this::judgeOnce);
        stream.ifPresent(PauseStream::close);
    }

    /** The recorder takes half a second to start, which the application must not wait for. It is asked once. */
    private void judgeOnce() throws InterruptedException {
        if (!hasBegun) {
            Verdicts.warmUp();
            // Not before: for that there may be no memory.
            hasBegun = true;
            stream = withCauses ? startStream() : Optional.empty();
        }
        Thread.sleep(LOOK_MS);
        verdicts.judge(false);
    }

    /** Ends all of it, within a moment, and tells nothing more. Does not wait. */
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

    /** Judges what is left, with what is known now, and ends what must not outlive this JVM. */
    public void finish() {
        meter.end();
        canary.ifPresent(Canary::end);
        await(meterThread);
        canary.ifPresent(bird -> await(bird.thread()));
        verdicts.judge(true);
        companion.ifPresent(Companion::end);
    }

    /** Each tells its last hiccup as it ends. One that has no CPU, or no carrier, is not waited for long. */
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
