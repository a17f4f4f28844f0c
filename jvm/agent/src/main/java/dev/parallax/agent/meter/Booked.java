package dev.parallax.agent.meter;

import dev.parallax.pauses.PauseClock;
import dev.parallax.pauses.PauseReading;
import java.util.concurrent.locks.LockSupport;

/** Reads pauses that are over but whose end the JVM may not have booked yet: it does after it lets threads go. */
final class Booked {
    private static final int TRIES = 40;
    private static final long APART_NS = 50_000;

    private Booked() {}

    /** What was since {@code before}; waits two milliseconds at most for the end of a pause. */
    static PauseReading since(PauseReading before, PauseClock clock) {
        PauseReading paused = clock.read().since(before);
        for (int n = 0; paused.unfinished() && n < TRIES; n++) {
            LockSupport.parkNanos(APART_NS);
            paused = clock.read().since(before);
        }
        return paused;
    }
}
