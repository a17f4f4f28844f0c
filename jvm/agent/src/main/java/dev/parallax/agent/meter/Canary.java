package dev.parallax.agent.meter;

import dev.parallax.agent.run.Threads;
import dev.parallax.pauses.PauseClock;
import dev.parallax.pauses.PauseReading;
import dev.parallax.recorder.Recorder;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Optional;
import java.util.function.Consumer;

/** A virtual thread that wakes up like {@link Meter}: any additional lateness is caused by its carriers. */
final class Canary implements Runnable {
    private final long apartNs;
    private final PauseClock pauses;
    private final Consumer<Raw> hiccups;
    private final Recorder lateness = new Recorder();
    private volatile boolean isOver;
    private Thread thread;

    private Canary(long apartNs, PauseClock pauses, Consumer<Raw> hiccups) {
        this.apartNs = apartNs;
        this.pauses = pauses;
        this.hiccups = hiccups;
    }

    /** Starts one; returns empty if the JVM has no virtual threads. */
    static Optional<Canary> start(long apartNs, PauseClock pauses, Consumer<Raw> hiccups) {
        Canary canary = new Canary(apartNs, pauses, hiccups);
        try {
            // Since JDK 21; as a preview feature before that, it throws.
            MethodHandle start = MethodHandles.publicLookup()
                    .findStatic(Thread.class, "startVirtualThread", MethodType.methodType(Thread.class, Runnable.class));
            canary.thread = (Thread) start.invoke((Runnable) canary);
            return Optional.of(canary);
        } catch (Throwable absent) {
            return Optional.empty();
        }
    }

    Thread thread() {
        return thread;
    }

    Recorder lateness() {
        return lateness;
    }

    /** Ends once its thread is unparked, and reports the waiting hiccup then. */
    void end() {
        isOver = true;
    }

    @Override
    public void run() {
        Threads.join();
        Threads.repeat("the virtual thread's hiccup meter is off for a second", () -> isOver, this::lookOn);
    }

    private void lookOn() {
        // As in the meter: loading the classes that a wake-up needs is not a hiccup.
        new Ticks(1).take(System.nanoTime() + 1, new Recorder());
        PauseAttribution bookings = new PauseAttribution(pauses.read(), hiccups);
        Ticks ticks = new Ticks(apartNs, () -> isOver);
        try {
            while (!isOver) {
                look(ticks, bookings);
            }
        } finally {
            bookings.end(pauses.read(), System.nanoTime());
        }
    }

    private void look(Ticks ticks, PauseAttribution bookings) {
        long dueNs = ticks.dueNs();
        long awakeNs = ticks.await();
        if (awakeNs - dueNs < 0) {
            return;
        }
        PauseReading paused = pauses.read();
        ticks.take(awakeNs, lateness);
        if (awakeNs - dueNs >= Meter.LEAST_NS) {
            bookings.late(paused, hiccup(dueNs, awakeNs));
        } else {
            bookings.onTime(paused, awakeNs);
        }
    }

    private static Raw hiccup(long dueNs, long awakeNs) {
        return new Raw(true, dueNs, awakeNs, 0, 0, 0, 0, 0, 0);
    }
}
