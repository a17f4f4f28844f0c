package dev.parallax.agent.meter;

import dev.parallax.agent.run.Log;
import dev.parallax.agent.run.Threads;
import dev.parallax.pauses.PauseClock;
import dev.parallax.pauses.PauseReading;
import dev.parallax.pauses.ThreadAccounts;
import dev.parallax.recorder.Recorder;
import java.io.IOException;
import java.util.OptionalLong;
import java.util.function.Consumer;

/**
 * A platform thread that wakes up periodically, allocates a little memory each time, and records how late it was.
 *
 * <p>Cost with a period of one millisecond: about ten microseconds of CPU per wake-up, mostly the kernel's cost of
 * waking a thread.
 */
final class Meter implements Runnable {
    /** A wake-up later than this is a hiccup. Without interference a timer is at most 0.1 ms late. */
    static final long LEAST_NS = 1_000_000;

    static final String THREAD = "parallax-hiccup";

    /** Enough that a collector which stalls allocating threads stalls this one too: half a megabyte per second. */
    private static final int PROBE_BYTES = 512;

    /** Accounts that change slowly or cost more to read are read at this period while all is well. */
    private static final long SLOW_NS = 20_000_000;

    private static final long HOST_NS = 200_000_000;

    /** Linux delays timers by up to 50 us, and waking a thread takes as long. */
    private static final long USUAL_MOST_NS = 200_000;

    private static final int USUAL_OF = 64;

    /** So short that no wake-up sleeps. */
    private static final long WARMING_NS = 1_000;

    /**
     * HotSpot compiles a method after 5,000 calls, counted in steps of 1,024 (Tier4InvocationThreshold, JDK 17 to 25).
     */
    private static final int LOOKS_UNTIL_COMPILED = 6_000;

    private final long apartNs;
    private final PauseClock pauses;
    private final Consumer<Raw> hiccups;
    private final Recorder lateness = new Recorder();

    /** Volatile, so that the compiler cannot eliminate the allocation. */
    private volatile byte[] probe;

    private volatile boolean isOver;

    /** Moving average of the lateness without interference. */
    private long usualNs = USUAL_MOST_NS / 2;

    private boolean isWarm;

    /** Not a constant, which would need memory at its first use. */
    private final String refusedText = "the hiccup meter allocates ".concat("nothing for a second");

    /** Whether it allocates nothing until that moment. */
    private boolean isRefused;

    private long refusedUntilNs;

    Meter(long apartNs, PauseClock pauses, Consumer<Raw> hiccups) {
        this.apartNs = apartNs;
        this.pauses = pauses;
        this.hiccups = hiccups;
    }

    Recorder lateness() {
        return lateness;
    }

    /** Ends once its thread is unparked, and reports the waiting hiccup then. */
    void end() {
        isOver = true;
    }

    /** The kernel's accounts at a wake-up. */
    private static final class Before {
        private final ThreadAccounts accounts;
        private OptionalLong runQueueNs;
        private OptionalLong throttledNs;
        private OptionalLong stolenNs;
        private long slowReadNs;
        private long hostReadNs;

        Before(ThreadAccounts accounts) {
            this.accounts = accounts;
            readAll(System.nanoTime());
        }

        void readAll(long nowNs) {
            runQueueNs = accounts.runQueueNs();
            throttledNs = accounts.throttledNs();
            stolenNs = accounts.stolenNs();
            slowReadNs = nowNs;
            hostReadNs = nowNs;
        }

        /** Counts so much of what was read for the next hiccup. */
        void leaveReady(long ns) {
            if (runQueueNs.isPresent()) {
                runQueueNs = OptionalLong.of(runQueueNs.getAsLong() - ns);
            }
        }

        void read(long nowNs) {
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
        Threads.repeat("the hiccup meter is off for a second", () -> isOver, this::lookOn);
    }

    private void lookOn() throws IOException {
        // Not try-with-resources: two OutOfMemoryErrors may be the same object, and suppressing it in itself would
        // throw another exception.
        ThreadAccounts accounts = ThreadAccounts.open();
        try {
            Before before = new Before(accounts);
            if (!isWarm) {
                warmUp(before);
                isWarm = true;
            }
            PauseAttribution bookings = new PauseAttribution(pauses.read(), hiccups);
            Ticks ticks = new Ticks(apartNs, () -> isOver);
            try {
                while (!isOver) {
                    look(ticks, lateness, before, bookings);
                }
            } finally {
                bookings.end(pauses.read(), System.nanoTime());
            }
        } finally {
            accounts.close();
        }
    }

    /** Waits for the next wake-up and measures its lateness. Does nothing if everything ends before it is due. */
    private void look(Ticks ticks, Recorder lateness, Before before, PauseAttribution bookings) {
        long dueNs = ticks.dueNs();
        long awakeNs = ticks.await();
        if (awakeNs - dueNs < 0) {
            return;
        }
        askForMemory(awakeNs);
        long endNs = System.nanoTime();
        PauseReading paused = pauses.read();
        ticks.take(endNs, lateness);
        if (endNs - dueNs >= LEAST_NS) {
            // Reading the causes takes a tenth of a period; if it takes longer, that is another hiccup.
            bookings.late(paused, explain(before, dueNs, awakeNs, endNs));
        } else {
            bookings.onTime(paused, endNs);
            usualNs += (Math.min(endNs - dueNs, USUAL_MOST_NS) - usualNs) / USUAL_OF;
            before.read(endNs);
        }
    }

    /**
     * If there is no memory it continues without for a while. The time until the refusal counts like any other wait.
     */
    private void askForMemory(long nowNs) {
        if (isRefused && nowNs - refusedUntilNs < 0) {
            return;
        }
        try {
            isRefused = false;
            probe = new byte[PROBE_BYTES];
        } catch (OutOfMemoryError refused) {
            isRefused = true;
            refusedUntilNs = System.nanoTime() + Threads.REST_NS;
            Log.once(refusedText, refused);
        }
    }

    /**
     * Loads the classes that a wake-up and a hiccup need, because otherwise the first ones would be late by tens of
     * milliseconds, and runs often enough to be compiled. When compilers have no CPU, a thread that triggers or counts
     * for compilation waits for their locks: a hiccup caused by the meter itself, as late as the five thousandth
     * wake-up.
     */
    private void warmUp(Before before) {
        Recorder unused = new Recorder();
        PauseAttribution bookings = new PauseAttribution(PauseReading.NONE, raw -> {});
        bookings.late(new PauseReading(1, 1, 1), explain(before, 0, 0, LEAST_NS));
        Ticks ticks = new Ticks(WARMING_NS);
        for (int n = 0; n < LOOKS_UNTIL_COMPILED; n++) {
            look(ticks, unused, before, bookings);
        }
        usualNs = USUAL_MOST_NS / 2;
        before.read(System.nanoTime() + HOST_NS + 1);
        before.readAll(System.nanoTime());
    }

    /** Collects all evidence except pauses, which may not be counted yet. */
    private Raw explain(Before before, long dueNs, long awakeNs, long endNs) {
        OptionalLong runQueueNs = before.runQueueNs;
        OptionalLong throttledNs = before.throttledNs;
        OptionalLong stolenNs = before.stolenNs;
        before.readAll(endNs);
        long readyNs = difference(before.runQueueNs, runQueueNs);
        long withinNs = Math.min(endNs - dueNs, readyNs);
        // The rest happened after this hiccup, before its account was read: it belongs to the next one.
        before.leaveReady(readyNs - withinNs);
        return new Raw(
                false,
                dueNs,
                endNs,
                endNs - awakeNs,
                usualNs,
                0,
                withinNs,
                difference(before.throttledNs, throttledNs),
                difference(before.stolenNs, stolenNs));
    }

    private static long difference(OptionalLong later, OptionalLong earlier) {
        return later.isPresent() && earlier.isPresent() ? Math.max(0, later.getAsLong() - earlier.getAsLong()) : 0;
    }
}
