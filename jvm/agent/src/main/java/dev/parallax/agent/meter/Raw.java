package dev.parallax.agent.meter;

import java.util.OptionalLong;

/**
 * A hiccup with the evidence that was there at once.
 *
 * @param isVirtual whether it was the virtual thread's
 * @param beginNs when a look was due, of {@link System#nanoTime()}
 * @param endNs when the thread was back, and had its memory
 * @param allocationNs how much of it was the wait for memory, safepoints within included
 * @param timerNs how late looks were of late where there was no hiccup
 * @param safepointNs how long all threads were stopped since the look before
 * @param runQueueNs how long the thread was ready and had no CPU since the look before
 * @param throttledNs how long the control group was out of quota, summed over CPUs
 * @param stolenNs what the hypervisor took, summed over CPUs
 */
record Raw(
        boolean isVirtual,
        long beginNs,
        long endNs,
        long allocationNs,
        long timerNs,
        long safepointNs,
        OptionalLong runQueueNs,
        OptionalLong throttledNs,
        OptionalLong stolenNs) {
    long lengthNs() {
        return endNs - beginNs;
    }

    /** How much of both is at the same time. */
    long overlapNs(long otherBeginNs, long otherEndNs) {
        long begin = Math.max(0, otherBeginNs - beginNs);
        long end = Math.min(lengthNs(), otherEndNs - beginNs);
        return Math.max(0, end - begin);
    }
}
