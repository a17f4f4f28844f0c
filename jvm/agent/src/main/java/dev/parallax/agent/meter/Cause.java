package dev.parallax.agent.meter;

import java.util.Locale;

/** Why there was a hiccup. Of each the parts exclude each other and sum to it. */
public enum Cause {
    /** The JVM had stopped all threads, by its own counters. */
    SAFEPOINT,
    /** The meter asked for memory and had to wait for it. */
    ALLOCATION,
    /** The control group was out of its CPU quota. */
    THROTTLED,
    /** The thread was ready and others had the CPUs. */
    RUN_QUEUE,
    /** A timer is late by itself, by some tens of microseconds: as much as when there is no hiccup. */
    TIMER,
    /** The process was stopped by a signal, until it was sent SIGCONT. */
    STOPPED,
    /** The hypervisor gave the CPU to others. */
    STOLEN,
    /** An idle JVM beside this one had the hiccup as well. */
    HOST,
    /** Of a virtual thread: threads that could not leave their carriers kept them all. */
    PINNED,
    /** Of a virtual thread: its carriers were busy with others, or it was their turn. */
    CARRIERS,
    /** None of these. */
    UNEXPLAINED;

    /**
     * Its name.
     *
     * @return in lower case
     */
    public String title() {
        return name().toLowerCase(Locale.ROOT);
    }
}
