package dev.parallax.micrometer;

import io.micrometer.core.instrument.Clock;
import io.micrometer.core.instrument.distribution.DistributionStatisticConfig;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Objects;
import java.util.function.BinaryOperator;

/**
 * What came lately, reported from totals when it is read: where something is recorded it costs nothing.
 *
 * <p>Lately is the length that is configured, or longer where nobody reads this often: back to the last reading before that. So
 * what came between two readings is never missed.
 */
final class Window<T> {
    private final Clock clock;
    private final BinaryOperator<T> since;
    private final long lengthMs;
    private final long stepMs;

    /** Earlier readings, the oldest of which is where the window begins. */
    private final Deque<Mark<T>> marks = new ArrayDeque<>();

    private record Mark<T>(long atMs, T total) {}

    /** @param since what the first total has more than the second */
    Window(Clock clock, DistributionStatisticConfig config, T none, BinaryOperator<T> since) {
        this.clock = clock;
        this.since = since;
        Duration expiry = Objects.requireNonNullElse(config.getExpiry(), DistributionStatisticConfig.DEFAULT.getExpiry());
        int parts = Objects.requireNonNullElse(
                config.getBufferLength(), DistributionStatisticConfig.DEFAULT.getBufferLength());
        lengthMs = expiry.toMillis();
        stepMs = Math.max(1, lengthMs / Math.max(1, parts));
        marks.add(new Mark<>(clock.wallTime(), none));
    }

    synchronized T latest(T total) {
        long nowMs = clock.wallTime();
        Mark<T> begin = marks.removeFirst();
        while (!marks.isEmpty() && marks.getFirst().atMs <= nowMs - lengthMs) {
            begin = marks.removeFirst();
        }
        marks.addFirst(begin);
        if (nowMs - marks.getLast().atMs >= stepMs) {
            marks.addLast(new Mark<>(nowMs, total));
        }
        return since.apply(total, begin.total);
    }
}
