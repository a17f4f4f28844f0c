package dev.parallax.agent.meter;

import dev.parallax.agent.run.Say;
import dev.parallax.agent.run.Threads;
import dev.parallax.pauses.PauseClock;
import dev.parallax.pauses.PauseReading;
import dev.parallax.pauses.ThreadAccounts;
import dev.parallax.recorder.Recorder;
import java.io.IOException;
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

    /** So soon that none of them sleeps. */
    private static final long WARMING_NS = 1_000;

    /** HotSpot's: 5,000 calls make a method hot, told of every 1,024 (Tier4InvocationThreshold, JDK 17 to 25). */
    private static final int LOOKS_UNTIL_COMPILED = 6_000;

    private final long apartNs;
    private final PauseClock pauses;
    private final Consumer<Raw> hiccups;
    private final Recorder lateness = new Recorder();

    /** Where the compiler cannot see that nobody reads it. */
    private volatile byte[] probe;

    private volatile boolean isOver;

    /** How late a look is where nothing is wrong: the mean of the last ones. */
    private long usualNs = USUAL_MOST_NS / 2;

    private boolean isWarm;

    /** No constant, which would take memory at its first use. */
    private final String refusedText = "the hiccup meter allocates ".concat("nothing for a second");

    /** Whether it asks for no memory until that moment. */
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

    /** It ends as soon as its thread is unparked, and tells the hiccup that waits then. */
    void end() {
        isOver = true;
    }

    /** The state of the kernel's accounts at a look. */
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

        /** So much of what was read counts from now on. */
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
        Threads.again("the hiccup meter is off for a second", () -> isOver, this::lookOn);
    }

    private void lookOn() throws IOException {
        // Not by a resource of `try`: of two refusals, which are one and the same object, it would make a third kind of failure.
        ThreadAccounts accounts = ThreadAccounts.open();
        try {
            Before before = new Before(accounts);
            if (!isWarm) {
                warmUp(before);
                isWarm = true;
            }
            Bookings bookings = new Bookings(pauses.read(), hiccups);
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

    /** Waits for the next look, and sees how late it is. Does nothing where all is over before it is due. */
    private void look(Ticks ticks, Recorder lateness, Before before, Bookings bookings) {
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
            // To look for causes takes a tenth of the time between two looks; what it takes longer is a hiccup again.
            bookings.late(paused, explain(before, dueNs, awakeNs, endNs));
        } else {
            bookings.onTime(paused, endNs);
            usualNs += (Math.min(endNs - dueNs, USUAL_MOST_NS) - usualNs) / USUAL_OF;
            before.read(endNs);
        }
    }

    /** Where there is none it looks on without, for a while. What it took to be refused is told as any other wait. */
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
            Say.once(refusedText, refused);
        }
    }

    /**
     * Loads what a look and a hiccup need, or the first ones would be late for that, by tens of milliseconds; and looks as
     * often as makes the JVM compile it. Where compilers have no CPU, a thread that asks for them, or counts for them, waits
     * for a lock of theirs: a hiccup of the meter's own making, as late as the five thousandth look.
     */
    private void warmUp(Before before) {
        Recorder unused = new Recorder();
        Bookings bookings = new Bookings(PauseReading.NONE, raw -> {});
        bookings.late(new PauseReading(1, 1, 1), explain(before, 0, 0, LEAST_NS));
        Ticks ticks = new Ticks(WARMING_NS);
        for (int n = 0; n < LOOKS_UNTIL_COMPILED; n++) {
            look(ticks, unused, before, bookings);
        }
        usualNs = USUAL_MOST_NS / 2;
        before.read(System.nanoTime() + HOST_NS + 1);
        before.readAll(System.nanoTime());
    }

    /** All but the pauses, which may not be booked yet. */
    private Raw explain(Before before, long dueNs, long awakeNs, long endNs) {
        OptionalLong runQueueNs = before.runQueueNs;
        OptionalLong throttledNs = before.throttledNs;
        OptionalLong stolenNs = before.stolenNs;
        before.readAll(endNs);
        long readyNs = difference(before.runQueueNs, runQueueNs);
        long withinNs = Math.min(endNs - dueNs, readyNs);
        // What there was more of came after this hiccup, before its account was read: it is the next one's.
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
