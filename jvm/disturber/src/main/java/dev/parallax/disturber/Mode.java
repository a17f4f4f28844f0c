package dev.parallax.disturber;

import java.util.Locale;

/** The kind of work that a disturbance does. */
public enum Mode {
    /**
     * Holds objects of rising sizes and drops most, so that the rest is scattered and the collector has to move it.
     * Also affects collectors with regions or pages but without generations.
     */
    FRAGMENTATION,
    /**
     * Arrays of more than half a G1 region, or of the largest kind of ZGC and Shenandoah: each is allocated
     * separately.
     */
    HUMONGOUS,
    /** Garbage in bursts, faster than a concurrent collector frees it. */
    ALLOCATION_STALL,
    /** Copies of a large array, which no thread leaves half way, while safepoints are requested. */
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
