package dev.parallax.agent.meter;

import dev.parallax.recorder.Recorder;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** Moments at which somebody is to look at the clock, a fixed time apart. One thread. */
final class Ticks {
    private final long apartNs;
    private final BooleanSupplier isOver;
    private long dueNs;

    Ticks(long apartNs) {
        this(apartNs, () -> false);
    }

    /** @param isOver whether to wait no more; to be asked at once, this thread has to be unparked */
    Ticks(long apartNs, BooleanSupplier isOver) {
        this.apartNs = apartNs;
        this.isOver = isOver;
        dueNs = System.nanoTime() + apartNs;
    }

    long dueNs() {
        return dueNs;
    }

    /** Waits for the next one. Returns when it is, or was, and before it only where all is over. */
    long await() {
        long nowNs = System.nanoTime();
        while (nowNs - dueNs < 0 && !isOver.getAsBoolean()) {
            LockSupport.parkNanos(dueNs - nowNs);
            nowNs = System.nanoTime();
            if (Thread.interrupted() && nowNs - dueNs < 0) {
                // Nobody has a reason to; parking again would return at once for ever.
                continue;
            }
        }
        return nowNs;
    }

    /** Records how late each one is that was due by now: a stall counts for all that it held up, not for one. */
    void take(long nowNs, Recorder lateness) {
        while (nowNs - dueNs >= 0) {
            lateness.record(dueNs, nowNs);
            dueNs += apartNs;
        }
    }
}
