package dev.parallax.agent.meter;

import dev.parallax.recorder.Recorder;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** Periodic wake-up times. Not thread-safe. */
final class Ticks {
    private final long apartNs;
    private final BooleanSupplier isOver;
    private long dueNs;

    Ticks(long apartNs) {
        this(apartNs, () -> false);
    }

    /** @param isOver whether to stop waiting; checked when the thread is unparked */
    Ticks(long apartNs, BooleanSupplier isOver) {
        this.apartNs = apartNs;
        this.isOver = isOver;
        dueNs = System.nanoTime() + apartNs;
    }

    long dueNs() {
        return dueNs;
    }

    /** Waits for the next wake-up. Returns at or after its time, or earlier if everything is over. */
    long await() {
        long nowNs = System.nanoTime();
        while (nowNs - dueNs < 0 && !isOver.getAsBoolean()) {
            LockSupport.parkNanos(dueNs - nowNs);
            nowNs = System.nanoTime();
            if (Thread.interrupted() && nowNs - dueNs < 0) {
                // Nobody should interrupt this thread; without clearing the flag, parking would return at once for
                // ever.
                continue;
            }
        }
        return nowNs;
    }

    /**
     * Records the lateness of every wake-up due by now: a stall counts for each one it delayed, not just for the first.
     */
    void take(long nowNs, Recorder lateness) {
        while (nowNs - dueNs >= 0) {
            lateness.record(dueNs, nowNs);
            dueNs += apartNs;
        }
    }
}
