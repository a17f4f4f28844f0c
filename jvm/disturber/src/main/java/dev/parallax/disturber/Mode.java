package dev.parallax.disturber;

import java.util.Locale;

/** What is pressed. */
public enum Mode {
    /**
     * Holds objects of rising sizes and drops most, so that what is left is scattered and the collector has to move it.
     * Works by regions and pages where a collector has no generations as well.
     */
    FRAGMENTATION,
    /** Arrays of more than half a region of G1, or of ZGC's and Shenandoah's largest kind: each has a place of its own. */
    HUMONGOUS,
    /** Garbage in bursts, faster than a collector that runs next to the application frees it. */
    ALLOCATION_STALL,
    /** Copies of a large array, which no thread leaves half way, while safepoints are asked for. */
    TIME_TO_SAFEPOINT,
    /** Classes in loaders that are dropped. */
    METASPACE,
    /** Deep stacks of virtual threads that wait: from JDK 21 on they are in the heap. */
    THREAD_STACKS;

    /**
     * Its name in options.
     *
     * @return in lower case, with hyphens
     */
    public String option() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }
}
