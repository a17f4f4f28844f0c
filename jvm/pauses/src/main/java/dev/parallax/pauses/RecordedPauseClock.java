package dev.parallax.pauses;

import java.time.Duration;
import java.util.List;

/** Adds up what {@link PauseStream} reports: exact, and a second late. */
final class RecordedPauseClock implements PauseClock, PauseStream.Listener {
    private final List<String> notUsed;
    private volatile PauseReading sum = PauseReading.NONE;
    private PauseStream stream;

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
        final PauseReading before = sum;
        sum = new PauseReading(
            before.begun() + 1,
            before.syncNs() + pause.syncNs(),
            before.heldNs() + pause.totalNs() - pause.syncNs());
    }

    @Override
    public PauseReading read() {
        return sum;
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
