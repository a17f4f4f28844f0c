package dev.parallax.agent.meter;

import dev.parallax.pauses.PauseClock;
import dev.parallax.pauses.PauseReading;
import dev.parallax.pauses.ThreadAccounts;
import dev.parallax.recorder.Recorder;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.OptionalLong;
import java.util.function.Consumer;

/**
 * A platform thread that looks at the clock at fixed moments, asks for some memory each time, and notes how late it was.
 *
 * <p>Cost, at a look a millisecond: some ten microseconds of CPU each, most of it the kernel's for waking a thread.
 */
final class Meter implements Runnable {
    /** A look that is later is a hiccup. A timer is late by 0.1 ms at most where nothing holds the thread up. */
    static final long LEAST_NS = 1_000_000;

    static final String THREAD = "parallax-hiccup";

    /** So much that a collector which lets threads wait for memory lets this one wait as well, half a megabyte a second. */
    private static final int PROBE_BYTES = 512;

    /** What changes slowly, or costs more to read, is read so rarely while all is well. */
    private static final long SLOW_NS = 20_000_000;

    private static final long HOST_NS = 200_000_000;

    /** Linux lets timers slack by 50 us, and a thread needs as much to wake. */
    private static final long USUAL_MOST_NS = 200_000;

    private static final int USUAL_OF = 64;

    private final long apartNs;
    private final PauseClock pauses;
    private final Consumer<Raw> hiccups;
    private final Recorder lateness = new Recorder();

    /** Where the compiler cannot see that nobody reads it. */
    private volatile byte[] probe;

    private volatile boolean isOver;

    /** How late a look is where nothing is wrong: the mean of the last ones. */
    private long usualNs = USUAL_MOST_NS / 2;

    Meter(long apartNs, PauseClock pauses, Consumer<Raw> hiccups) {
        this.apartNs = apartNs;
        this.pauses = pauses;
        this.hiccups = hiccups;
    }

    Recorder lateness() {
        return lateness;
    }

    void end() {
        isOver = true;
    }

    /** The state of all accounts at a look. */
    private final class Before {
        private PauseReading paused = pauses.read();
        private OptionalLong runQueueNs;
        private OptionalLong throttledNs;
        private OptionalLong stolenNs;
        private long slowReadNs;
        private long hostReadNs;
        private final ThreadAccounts accounts;

        Before(ThreadAccounts accounts) {
            this.accounts = accounts;
            readAll(System.nanoTime());
        }

        void readAll(long nowNs) {
            paused = pauses.read();
            runQueueNs = accounts.runQueueNs();
            throttledNs = accounts.throttledNs();
            stolenNs = accounts.stolenNs();
            slowReadNs = nowNs;
            hostReadNs = nowNs;
        }

        void read(long nowNs) {
            paused = pauses.read();
            runQueueNs = accounts.runQueueNs();
            if (nowNs - slowReadNs > SLOW_NS) {
                throttledNs = accounts.throttledNs();
                slowReadNs = nowNs;
            }
            if (nowNs - hostReadNs > HOST_NS) {
                stolenNs = accounts.stolenNs();
                hostReadNs = nowNs;
            }
        }
    }

    @Override
    public void run() {
        try (ThreadAccounts accounts = ThreadAccounts.open()) {
            Before before = new Before(accounts);
            warmUp(before);
            Ticks ticks = new Ticks(apartNs);
            while (!isOver) {
                long dueNs = ticks.dueNs();
                long awakeNs = ticks.await();
                probe = new byte[PROBE_BYTES];
                long endNs = System.nanoTime();
                ticks.take(endNs, lateness);
                if (endNs - dueNs >= LEAST_NS) {
                    hiccups.accept(explain(before, dueNs, awakeNs, endNs));
                    before.readAll(System.nanoTime());
                    // What it took to find out is no hiccup.
                    ticks.begin();
                } else {
                    usualNs += (Math.min(endNs - dueNs, USUAL_MOST_NS) - usualNs) / USUAL_OF;
                    before.read(endNs);
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Loads what a look and a hiccup need, or the first ones would be late for that, by tens of milliseconds. */
    private void warmUp(Before before) {
        Recorder unused = new Recorder();
        Ticks ticks = new Ticks(1);
        ticks.await();
        ticks.take(System.nanoTime(), unused);
        explain(before, 0, 0, Meter.LEAST_NS);
        before.readAll(System.nanoTime());
        before.read(System.nanoTime() + HOST_NS + 1);
    }

    private Raw explain(Before before, long dueNs, long awakeNs, long endNs) {
        PauseReading paused = Booked.since(before.paused, pauses);
        return new Raw(
                false,
                dueNs,
                endNs,
                endNs - awakeNs,
                usualNs,
                paused.pausedNs(),
                difference(before.accounts.runQueueNs(), before.runQueueNs),
                difference(before.accounts.throttledNs(), before.throttledNs),
                difference(before.accounts.stolenNs(), before.stolenNs));
    }

    private static OptionalLong difference(OptionalLong later, OptionalLong earlier) {
        return later.isPresent() && earlier.isPresent()
                ? OptionalLong.of(Math.max(0, later.getAsLong() - earlier.getAsLong()))
                : OptionalLong.empty();
    }
}
