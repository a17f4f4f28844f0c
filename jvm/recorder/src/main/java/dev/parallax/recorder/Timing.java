package dev.parallax.recorder;

/**
 * Wait, service and response times of the same operations, each in a {@link Recorder}.
 *
 * <p>One timestamp separates wait from service, so the two sum to the response time exactly. An operation that gave up
 * waiting has no service time, and its wait is kept apart from that of the others.
 *
 * @param waited from the intended start to the actual start
 * @param service from the actual start to the end
 * @param response from the intended start to the end
 * @param abandoned from the intended start until an operation was given up without having started
 */
public record Timing(Recorder waited, Recorder service, Recorder response, Recorder abandoned) {
    /** Creates new recorders. */
    public Timing() {
        this(new Recorder(), new Recorder(), new Recorder(), new Recorder());
    }

    /**
     * Records one operation. Timestamps are from {@link System#nanoTime()}.
     *
     * @param intendedNs when it was due or requested
     * @param begunNs when it had what it waited for
     * @param endedNs when it ended
     */
    public void record(long intendedNs, long begunNs, long endedNs) {
        waited.record(intendedNs, begunNs);
        service.record(begunNs, endedNs);
        response.record(intendedNs, endedNs);
    }

    /**
     * Records an operation that never started.
     *
     * @param intendedNs when it was due or requested
     * @param endedNs when it was given up
     */
    public void recordAbandoned(long intendedNs, long endedNs) {
        abandoned.record(intendedNs, endedNs);
    }
}
