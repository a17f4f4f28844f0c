package dev.parallax.disturber;

import dev.parallax.pauses.PauseClock;
import dev.parallax.pauses.PauseReading;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * One disturbance: begins, lasts, and ends by itself or on request; then everything it held is released.
 *
 * <p>It throws nothing, least of all into the application: it holds less when the application needs the memory, and
 * ends when it runs out of memory itself.
 */
public final class Disturbance {
    /** How often the pace is checked. */
    private static final long STEP_NS = 2_000_000;

    /** Number of steps into which a second's work is divided, so that the end is never far. */
    private static final int STEPS_A_SECOND = 8;

    private final Plan plan;
    private final PauseClock clock;
    private final Listener listener;
    private final CountDownLatch over = new CountDownLatch(1);
    private final Thread thread;
    private volatile boolean isStopped;
    private volatile Outcome outcome = new Outcome(0, 0, 0, 0, "", Effect.Count.NONE, 0, "has not begun");

    /** Receives the events of a disturbance. Called by the disturbance's thread. */
    @FunctionalInterface
    public interface Listener {
        /**
         * It began or ended.
         *
         * @param atNs when, of {@link System#nanoTime()}
         * @param text one line
         */
        void event(long atNs, String text);
    }

    /**
     * What a disturbance did, and its effect.
     *
     * @param bytes amount of work done
     * @param ns for how long
     * @param heldBytes at its end, before they were released
     * @param mostHeldBytes at any time
     * @param unit meaning of the bytes
     * @param effect what the flight recorder reported during that time
     * @param syncNs how long threads took to stop for safepoints during that time
     * @param end why it ended
     */
    public record Outcome(
            long bytes,
            long ns,
            long heldBytes,
            long mostHeldBytes,
            String unit,
            Effect.Count effect,
            long syncNs,
            String end) {
        /**
         * The rate that was reached.
         *
         * @return bytes per second
         */
        public double bytesPerSecond() {
            return ns == 0 ? 0 : bytes * 1e9 / ns;
        }
    }

    private Disturbance(Plan plan, PauseClock clock, Listener listener) {
        this.plan = plan;
        this.clock = clock;
        this.listener = listener;
        this.thread = new Thread(this::run, "parallax-disturber");
        thread.setDaemon(true);
    }

    /**
     * Starts a disturbance.
     *
     * @param plan what to do
     * @param clock of this JVM's pauses, to report the effect; the caller closes it
     * @param listener receives the events
     * @return the disturbance in progress
     */
    public static Disturbance start(Plan plan, PauseClock clock, Listener listener) {
        Disturbance disturbance = new Disturbance(plan, clock, listener);
        disturbance.thread.start();
        return disturbance;
    }

    /** Requests the end, which follows within a moment; does not wait. */
    public void stop() {
        isStopped = true;
        LockSupport.unpark(thread);
    }

    /**
     * Waits for the end of the disturbance.
     *
     * @param longest maximum wait, in milliseconds
     * @return whether it is over, and what it held is released
     * @throws InterruptedException if the caller is interrupted
     */
    public boolean await(long longest) throws InterruptedException {
        return over.await(longest, TimeUnit.MILLISECONDS);
    }

    /**
     * What it has done so far.
     *
     * @return as of the last step
     */
    public Outcome outcome() {
        return outcome;
    }

    private void run() {
        try {
            sleepUntil(System.nanoTime() + plan.after().toNanos());
            if (!isStopped) {
                disturb();
            }
        } catch (Throwable e) {
            report("disturbance " + plan.mode().option() + " not done: " + e.getMessage());
        } finally {
            over.countDown();
        }
    }

    private void disturb() throws Exception {
        Room room = new Room();
        Press press = Press.of(plan, room);
        Effect effect = Effect.watch(plan.mode());
        try {
            PauseReading before = clock.read();
            report("disturbance begins: " + plan.mode().option() + ", " + mb(plan.bytesPerSecond()) + "/s, holding "
                    + mb((long) (plan.share() * room.maxBytes())));
            String end = "its time is over";
            long begunNs = System.nanoTime();
            long mostHeld = 0;
            long done = 0;
            try {
                long atMost = Math.max(press.leastBytes(), plan.bytesPerSecond() / STEPS_A_SECOND);
                long nowNs = begunNs;
                while (!isStopped && nowNs - begunNs < plan.length().toNanos()) {
                    long due = due(press, nowNs - begunNs) - done;
                    if (due >= press.leastBytes()) {
                        done += press.press(Math.min(due, atMost));
                    }
                    mostHeld = Math.max(mostHeld, press.heldBytes());
                    outcome = new Outcome(done, System.nanoTime() - begunNs, press.heldBytes(), mostHeld, press.unit(),
                            Effect.Count.NONE, clock.read().since(before).syncNs(), "goes on");
                    if (due < atMost) {
                        sleepUntil(nowNs + STEP_NS);
                    }
                    nowNs = System.nanoTime();
                }
                long rest = due(press, plan.length().toNanos()) - done;
                if (!isStopped && rest > 0 && rest <= press.leastBytes()) {
                    done += press.press(rest);
                }
                if (isStopped) {
                    end = "stopped on command";
                }
            } catch (OutOfMemoryError e) {
                press.giveBack();
                end = "ended early: no memory was left";
            }
            long ns = System.nanoTime() - begunNs;
            long held = press.heldBytes();
            long syncNs = clock.read().since(before).syncNs();
            press.giveBack();
            Effect.Count count = effect.end();
            outcome = new Outcome(done, ns, held, mostHeld, press.unit(), count, syncNs, end);
            report("disturbance over: " + plan.mode().option() + ", " + end + "; " + mb((long) outcome.bytesPerSecond())
                    + "/s " + press.unit() + " for " + ns / 1_000_000 + " ms, held up to " + mb(mostHeld)
                    + "; came of it: " + count.text() + ", threads took " + syncNs / 1_000_000 + " ms to stop in all");
        } finally {
            press.giveBack();
            effect.close();
        }
    }

    private long due(Press press, long ns) {
        return press.due(plan.bytesPerSecond() * (ns / 1e9));
    }

    private void sleepUntil(long untilNs) {
        long leftNs = untilNs - System.nanoTime();
        while (leftNs > 0 && !isStopped) {
            LockSupport.parkNanos(leftNs);
            leftNs = untilNs - System.nanoTime();
        }
    }

    private void report(String text) {
        try {
            listener.event(System.nanoTime(), text);
        } catch (RuntimeException e) {
            // A failure of the listener is its own; the memory is released nevertheless.
        }
    }

    private static String mb(long bytes) {
        return String.format(Locale.ROOT, "%.1f MB", bytes / 1048576.0);
    }
}
