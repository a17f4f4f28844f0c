package dev.parallax.agent.meter;

/**
 * A hiccup with the evidence that was there at once.
 *
 * @param isVirtual whether it was the virtual thread's
 * @param beginNs when a look was due, of {@link System#nanoTime()}
 * @param endNs when the thread was back, and had its memory
 * @param allocationNs how much of it was the wait for memory, safepoints within included
 * @param timerNs how late looks were of late where there was no hiccup
 * @param safepointNs how long of it all threads were stopped, by the JVM's counters, as {@link Bookings} divides what they grew
 * @param runQueueNs how long of it the thread was ready and had no CPU; 0 where the host does not tell, as the next two
 * @param throttledNs how long the control group was out of quota since the look before, summed over CPUs
 * @param stolenNs what the hypervisor took since the look before, summed over CPUs
 */
record Raw(
        boolean isVirtual,
        long beginNs,
        long endNs,
        long allocationNs,
        long timerNs,
        long safepointNs,
        long runQueueNs,
        long throttledNs,
        long stolenNs) {
    long lengthNs() {
        return endNs - beginNs;
    }

    /** The same, with how long of it all threads were stopped. */
    Raw withSafepointNs(long ns) {
        return new Raw(
                isVirtual, beginNs, endNs, allocationNs, timerNs, ns, runQueueNs, throttledNs, stolenNs);
    }

    /** How much of both is at the same time. */
    long overlapNs(long otherBeginNs, long otherEndNs) {
        long begin = Math.max(0, otherBeginNs - beginNs);
        long end = Math.min(lengthNs(), otherEndNs - beginNs);
        return Math.max(0, end - begin);
    }
}
