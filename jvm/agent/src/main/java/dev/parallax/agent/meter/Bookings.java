package dev.parallax.agent.meter;

import dev.parallax.pauses.PauseReading;
import java.util.function.Consumer;

/**
 * Gives each hiccup the pauses that were in it, by what the JVM had booked at each look. One thread.
 *
 * <p>The JVM books the end of a pause after it lets threads go, so a look may come before that: a hiccup in which a pause
 * began is told at the look after it. Collections may follow each other that soon, so one hiccup takes no more than its
 * length, and the next has what is left. Sums over hiccups lose nothing; two that follow each other may have up to the time
 * between two looks of the other's.
 */
final class Bookings {
    /** So many looks it waits for the only pause that began: who books it may have no CPU just then. */
    private static final int LOOKS_MOST = 20;

    /** So many where others are booked: then it may be that there was no more to it. */
    private static final int LOOKS_USUAL = 3;

    private final Consumer<Raw> hiccups;

    /** From here on pauses are counted. */
    private PauseReading from;

    /** So much since then is given away. */
    private long givenNs;

    private long begun;

    /** The hiccup whose pause may not be booked yet; null for none. */
    private Raw waiting;

    private int looks;

    Bookings(PauseReading now, Consumer<Raw> hiccups) {
        this.hiccups = hiccups;
        passOver(now);
    }

    /** Nothing was late; with {@code now} as it was read. */
    void onTime(PauseReading now) {
        if (waiting == null || isTold(now)) {
            end(now);
            passOver(now);
        }
    }

    private boolean isTold(PauseReading now) {
        looks++;
        return leftNs(now) >= waiting.lengthNs()
                || looks >= (now.since(from).unfinished() ? LOOKS_MOST : LOOKS_USUAL);
    }

    /** A look was late; {@code hiccup} does not have its pauses yet. */
    void late(PauseReading now, Raw hiccup) {
        end(now);
        boolean mayBePause = leftNs(now) > 0 || now.begun() != begun;
        begun = now.begun();
        if (mayBePause) {
            waiting = hiccup;
            looks = 0;
        } else {
            hiccups.accept(hiccup);
        }
    }

    /** Tells the hiccup that waits, if one does. */
    void end(PauseReading now) {
        if (waiting != null) {
            long ns = Math.min(leftNs(now), waiting.lengthNs());
            givenNs += ns;
            hiccups.accept(waiting.withSafepointNs(ns));
            waiting = null;
        }
    }

    private long leftNs(PauseReading now) {
        return now.since(from).pausedNs() - givenNs;
    }

    private void passOver(PauseReading now) {
        from = now;
        givenNs = 0;
        begun = now.begun();
    }
}
