package dev.parallax.agent.meter;

/**
 * A hiccup with the evidence available immediately.
 *
 * @param isVirtual whether it is the virtual thread's
 * @param beginNs when the wake-up was due, from {@link System#nanoTime()}
 * @param endNs when the thread ran again and had its memory
 * @param allocationNs time waiting for memory, including safepoints in the meantime
 * @param timerNs recent lateness of wake-ups without a hiccup
 * @param safepointNs time in which all threads were stopped, by the JVM's counters as assigned by {@link PauseAttribution}
 * @param runQueueNs time the thread was runnable without a CPU; 0 if the host does not report it, like the next two
 * @param throttledNs time the control group was out of quota since the previous wake-up, summed over CPUs
 * @param stolenNs time taken by the hypervisor since the previous wake-up, summed over CPUs
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

    /** Returns a copy with the time in which all threads were stopped. */
    Raw withSafepointNs(long ns) {
        return new Raw(
                isVirtual, beginNs, endNs, allocationNs, timerNs, ns, runQueueNs, throttledNs, stolenNs);
    }

    /** Returns the overlap with another period. */
    long overlapNs(long otherBeginNs, long otherEndNs) {
        long begin = Math.max(0, otherBeginNs - beginNs);
        long end = Math.min(lengthNs(), otherEndNs - beginNs);
        return Math.max(0, end - begin);
    }
}
