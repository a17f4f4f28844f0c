package dev.parallax.micrometer;

import io.micrometer.core.instrument.Clock;
import io.micrometer.core.instrument.distribution.DistributionStatisticConfig;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Objects;
import java.util.function.BinaryOperator;

/**
 * Recent values, derived from totals when they are read: recording costs nothing.
 *
 * <p>Recent is the configured length, or longer if readings are less frequent: back to the last reading before that. So
 * what happened between two readings is never missed.
 */
final class Window<T> {
    private final Clock clock;
    private final BinaryOperator<T> since;
    private final long lengthMs;
    private final long stepMs;

    /** Earlier readings; the window begins at the oldest. */
    private final Deque<Mark<T>> marks = new ArrayDeque<>();

    private record Mark<T>(long atMs, T total) {}

    /** @param since what the first total has in addition to the second */
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
