package dev.parallax.agent.meter;

import dev.parallax.pauses.PauseReading;
import java.util.function.Consumer;

/**
 * Assigns pauses to hiccups from the JVM's counters at each wake-up of a meter. Not thread-safe.
 *
 * <p>The JVM updates its counters for the end of a pause after resuming the threads and before the next pause begins. A
 * wake-up may come before that update, so a hiccup in which a pause may have begun waits for a later one. What is
 * counted until then belongs to it as long as no other pause began. If one did, the counters identify its pause only if
 * the hiccup waited for a single one; otherwise it leaves to the next hiccup whatever it cannot have contained, because
 * its thread was waiting for a CPU then. A hiccup never takes more than its own length; the rest goes to the next.
 *
 * <p>Limits: if the host has no account of the thread, one of two consecutive late wake-ups may get time of the other,
 * and a hiccup may get time paused between the previous wake-up and its own due time.
 */
final class PauseAttribution {
    /** Maximum wait if only one pause began: the thread that updates the counters may have no CPU at the moment. */
    private static final long WAIT_MOST_NS = 20_000_000;

    /** Maximum wait if other pauses are counted already: there may be nothing more to come. */
    private static final long WAIT_USUAL_NS = 3_000_000;

    private final Consumer<Raw> hiccups;

    /** Pauses are counted from here on. */
    private PauseReading from;

    /** The part already assigned. */
    private long givenNs;

    /** Reading at the last wake-up. */
    private PauseReading last;

    /** The hiccup whose pause may not be counted yet; null if there is none. */
    private Raw waiting;

    PauseAttribution(PauseReading now, Consumer<Raw> hiccups) {
        this.hiccups = hiccups;
        passOver(now);
    }

    /** A wake-up at {@code nowNs} was in time; {@code now} was read then. */
    void onTime(PauseReading now, long nowNs) {
        if (waiting == null || isKnown(now, nowNs)) {
            end(now, nowNs);
            passOver(now);
        }
        last = now;
    }

    private boolean isKnown(PauseReading now, long nowNs) {
        long patienceNs = now.since(from).unfinished() ? WAIT_MOST_NS : WAIT_USUAL_NS;
        return now.begun() != last.begun()
                || leftNs(now) >= waiting.lengthNs()
                || nowNs - waiting.endNs() >= patienceNs;
    }

    /** A wake-up was late; {@code hiccup} has no pauses assigned yet. */
    void late(PauseReading now, Raw hiccup) {
        end(now, hiccup.endNs());
        if (leftNs(now) > 0 || now.begun() != last.begun()) {
            waiting = hiccup;
        } else {
            hiccups.accept(hiccup);
        }
        last = now;
    }

    /** Reports the waiting hiccup, if there is one. */
    void end(PauseReading now, long nowNs) {
        if (waiting != null) {
            long bookedNs = leftNs(last);
            long ns = Math.min(bookedNs + ownNs(now, nowNs), waiting.lengthNs());
            hiccups.accept(waiting.withSafepointNs(ns));
            waiting = null;
            // What was counted at the last wake-up beyond what the hiccup was before it.
            from = last;
            givenNs = Math.max(0, ns - bookedNs);
        }
    }

    /** How much of the time counted since the last wake-up belongs to the waiting hiccup. */
    private long ownNs(PauseReading now, long nowNs) {
        long newNs = now.since(last).pausedNs();
        if (now.begun() == last.begun() || last.since(from).unfinished()) {
            return newNs;
        }
        long mostNs = Math.max(0, waiting.lengthNs() - waiting.runQueueNs() - leftNs(last));
        // Anything beyond the time elapsed since must be older.
        long leastNs = newNs - (nowNs - waiting.endNs());
        return Math.min(newNs, Math.max(mostNs, leastNs));
    }

    private long leftNs(PauseReading now) {
        return now.since(from).pausedNs() - givenNs;
    }

    private void passOver(PauseReading now) {
        from = now;
        last = now;
        givenNs = 0;
    }
}
