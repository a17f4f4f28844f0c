package dev.parallax.agent.meter;

import dev.parallax.pauses.PauseReading;
import java.util.function.Consumer;

/**
 * Gives each hiccup the pauses that were in it, by what the JVM had booked at each look. One thread.
 *
 * <p>The JVM books the end of a pause after it lets threads go, and before the next one begins. A look may come before that, so
 * a hiccup in which a pause may have begun waits for a later look. What is booked until then is its own as long as no other
 * pause began. Once one did, the counters tell whose it is only where the hiccup waited for a single pause; else it leaves to
 * the next one what it cannot have had, as its thread waited for a CPU meanwhile. It takes no more than its length, and the
 * next has what is left.
 *
 * <p>Where the host has no account of the thread, one of two late looks in a row may so have what is the other's; and a hiccup
 * may have what was paused between the look before it and the moment it was due.
 */
final class Bookings {
    /** So long it waits for the only pause that began: who books it may have no CPU just then. */
    private static final long WAIT_MOST_NS = 20_000_000;

    /** So long where others are booked: then it may be that there was no more to it. */
    private static final long WAIT_USUAL_NS = 3_000_000;

    private final Consumer<Raw> hiccups;

    /** From here on pauses are counted. */
    private PauseReading from;

    /** So much since then is given away. */
    private long givenNs;

    /** At the last look. */
    private PauseReading last;

    /** The hiccup whose pause may not be booked yet; null for none. */
    private Raw waiting;

    Bookings(PauseReading now, Consumer<Raw> hiccups) {
        this.hiccups = hiccups;
        passOver(now);
    }

    /** Nothing was late at {@code nowNs}; with {@code now} as it was read then. */
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

    /** A look was late; {@code hiccup} does not have its pauses yet. */
    void late(PauseReading now, Raw hiccup) {
        end(now, hiccup.endNs());
        if (leftNs(now) > 0 || now.begun() != last.begun()) {
            waiting = hiccup;
        } else {
            hiccups.accept(hiccup);
        }
        last = now;
    }

    /** Tells the hiccup that waits, if one does. */
    void end(PauseReading now, long nowNs) {
        if (waiting != null) {
            long bookedNs = leftNs(last);
            long ns = Math.min(bookedNs + ownNs(now, nowNs), waiting.lengthNs());
            hiccups.accept(waiting.withSafepointNs(ns));
            waiting = null;
            // What was booked at the last look and is more than the hiccup was before it.
            from = last;
            givenNs = Math.max(0, ns - bookedNs);
        }
    }

    /** How much of what was booked since the last look is of the hiccup that waits. */
    private long ownNs(PauseReading now, long nowNs) {
        long newNs = now.since(last).pausedNs();
        if (now.begun() == last.begun() || last.since(from).unfinished()) {
            return newNs;
        }
        long mostNs = Math.max(0, waiting.lengthNs() - waiting.runQueueNs() - leftNs(last));
        // What is more than the time since can hold is of before.
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
