package dev.parallax.pauses;

import java.util.List;
import java.util.Map;
import java.util.OptionalLong;

/**
 * What the operating system withheld from this process up to this reading: time in which it could have run and did not.
 * What could not be read is absent, not zero, and {@code missing} has the reason.
 *
 * @param throttledNs      time that the process's control group was out of its CPU quota, in nanoseconds, summed over
 *                         CPUs; of the group itself, not of those above it.
 * @param runQueueByThread for each thread, by the kernel's number, how long it waited for a CPU, in nanoseconds.
 * @param stolenNs         time that the hypervisor gave to others, in nanoseconds, summed over the host's CPUs; counted
 *                         by the kernel in steps of 10 ms.
 * @param missing          what could not be read and why, a line each.
 */
public record PlatformReading(
    OptionalLong throttledNs,
    Map<Long, Long> runQueueByThread,
    OptionalLong stolenNs,
    List<String> missing) {

    /**
     * {@return what was withheld from the process after an earlier reading}
     *
     * @param earlier of the same {@link Platform}.
     */
    public Loss since(final PlatformReading earlier) {
        return new Loss(
            difference(throttledNs, earlier.throttledNs),
            runQueueSince(earlier),
            difference(stolenNs, earlier.stolenNs),
            missing);
    }

    /** A thread that began in between counts from its beginning; the waits of one that has ended since are lost. */
    private OptionalLong runQueueSince(final PlatformReading earlier) {
        if (runQueueByThread.isEmpty() || earlier.runQueueByThread.isEmpty()) {
            return OptionalLong.empty();
        }
        long sum = 0;
        for (final Map.Entry<Long, Long> thread : runQueueByThread.entrySet()) {
            final long before = earlier.runQueueByThread.getOrDefault(thread.getKey(), 0L);
            final boolean numberWasReused = thread.getValue() < before;
            sum += numberWasReused ? thread.getValue() : thread.getValue() - before;
        }
        return OptionalLong.of(sum);
    }

    private static OptionalLong difference(final OptionalLong later, final OptionalLong earlier) {
        return later.isPresent() && earlier.isPresent()
            ? OptionalLong.of(later.getAsLong() - earlier.getAsLong())
            : OptionalLong.empty();
    }

    /**
     * What the operating system withheld from the process between two readings, in nanoseconds.
     *
     * @param throttledNs out of CPU quota, summed over CPUs.
     * @param runQueueNs  waited for a CPU, summed over threads; throttled threads wait too and count here as well.
     * @param stolenNs    given to others by the hypervisor, summed over the host's CPUs.
     * @param missing     what could not be read and why, one line each.
     */
    public record Loss(OptionalLong throttledNs, OptionalLong runQueueNs, OptionalLong stolenNs, List<String> missing) {
    }
}
