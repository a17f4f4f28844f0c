package dev.parallax.pauses;

import java.time.Duration;
import java.util.List;

/** Adds up what {@link PauseStream} reports: exact, but a second late. */
final class RecordedPauseClock implements PauseClock, PauseStream.Listener {
    private final List<String> notUsed;
    private volatile Counted counted = new Counted(PauseReading.NONE, 0);
    private PauseStream stream;

    /** The sum of all pauses up to that safepoint. */
    record Counted(PauseReading sum, long safepointId) {
    }

    private RecordedPauseClock(final List<String> notUsed) {
        this.notUsed = List.copyOf(notUsed);
    }

    static RecordedPauseClock start(final List<String> notUsed) throws Unavailable {
        final RecordedPauseClock clock = new RecordedPauseClock(notUsed);
        clock.stream = PauseStream.start(Duration.ZERO, clock);
        return clock;
    }

    @Override
    public void pause(final Pause pause) {
        final PauseReading before = counted.sum;
        final PauseReading sum = new PauseReading(
            before.begun() + 1,
            before.syncNs() + pause.syncNs(),
            before.heldNs() + pause.totalNs() - pause.syncNs());
        counted = new Counted(sum, pause.safepointId());
    }

    @Override
    public PauseReading read() {
        return counted.sum;
    }

    /** A reading, with the last safepoint that it includes. */
    Counted counted() {
        return counted;
    }

    @Override
    public Way way() {
        return Way.FLIGHT_RECORDER;
    }

    @Override
    public List<String> notUsed() {
        return notUsed;
    }

    @Override
    public void close() {
        stream.close();
    }
}
