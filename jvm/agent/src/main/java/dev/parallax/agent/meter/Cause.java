package dev.parallax.agent.meter;

import java.util.Locale;

/** Causes of hiccups. The parts of one hiccup do not overlap and sum to its length. */
public enum Cause {
    /** The JVM stopped all threads, by its own counters. */
    SAFEPOINT,
    /** The meter had to wait for memory. */
    ALLOCATION,
    /** The control group exceeded its CPU quota. */
    THROTTLED,
    /** The thread was runnable but other threads had the CPUs. */
    RUN_QUEUE,
    /** Normal timer lateness of some tens of microseconds, as without a hiccup. */
    TIMER,
    /** The process was stopped by a signal until SIGCONT. */
    STOPPED,
    /** The hypervisor gave the CPU to others. */
    STOLEN,
    /** An idle companion JVM had the hiccup too. */
    HOST,
    /** Virtual threads only: threads that could not be unmounted occupied all carriers. */
    PINNED,
    /** Virtual threads only: the carriers were busy with other virtual threads, or waiting for a CPU themselves. */
    CARRIERS,
    /** None of these. */
    UNEXPLAINED;

    /**
     * Name of the cause.
     *
     * @return in lower case
     */
    public String title() {
        return name().toLowerCase(Locale.ROOT);
    }
}
