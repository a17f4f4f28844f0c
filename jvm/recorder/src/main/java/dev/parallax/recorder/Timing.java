package dev.parallax.recorder;

/**
 * Wait and service of the same operations, each in a {@link Recorder} of its own, and the whole of both.
 *
 * <p>One stamp between the two tells them apart: wait and service of an operation sum to its response exactly. Of what
 * gave up waiting there is no service, and its wait is not mixed with those that got what they waited for.
 *
 * @param waited from when it was due until it began
 * @param service from when it began until it ended
 * @param response from when it was due until it ended
 * @param gaveUp from when it was due until it was given up, without having begun
 */
public record Timing(Recorder waited, Recorder service, Recorder response, Recorder gaveUp) {
    /** With new recorders. */
    public Timing() {
        this(new Recorder(), new Recorder(), new Recorder(), new Recorder());
    }

    /**
     * Records one operation. Stamps are of {@link System#nanoTime()}.
     *
     * @param intendedNs when it was due, or asked for
     * @param begunNs when it had what it waited for
     * @param endedNs when it was over
     */
    public void record(long intendedNs, long begunNs, long endedNs) {
        waited.record(intendedNs, begunNs);
        service.record(begunNs, endedNs);
        response.record(intendedNs, endedNs);
    }

    /**
     * Records one that never began.
     *
     * @param intendedNs when it was due, or asked for
     * @param endedNs when it was given up
     */
    public void recordGaveUp(long intendedNs, long endedNs) {
        gaveUp.record(intendedNs, endedNs);
    }
}
