package dev.parallax.micrometer;

import dev.parallax.recorder.Durations;
import dev.parallax.recorder.Recorder;
import io.micrometer.core.instrument.AbstractTimer;
import io.micrometer.core.instrument.Clock;
import io.micrometer.core.instrument.distribution.DistributionStatisticConfig;
import io.micrometer.core.instrument.distribution.HistogramSnapshot;
import io.micrometer.core.instrument.distribution.NoopHistogram;
import io.micrometer.core.instrument.distribution.pause.NoPauseDetector;
import io.micrometer.core.instrument.util.TimeUtils;
import java.util.concurrent.TimeUnit;

/** A timer that is a {@link Recorder}. */
final class ParallaxTimer extends AbstractTimer {
    private static final double NS = 1e9;

    private final Recorder recorder = new Recorder();
    private final Window<Durations> window;
    private final Snapshots snapshots;

    ParallaxTimer(Id id, Clock clock, DistributionStatisticConfig config) {
        super(id, clock, NoPauseDetector.INSTANCE, TimeUnit.SECONDS, NoopHistogram.INSTANCE);
        window = new Window<>(clock, config, Durations.NONE, Durations::since);
        snapshots = new Snapshots(config, NS);
    }

    Recorder recorder() {
        return recorder;
    }

    @Override
    protected void recordNonNegative(long amount, TimeUnit unit) {
        recorder.record(unit.toNanos(amount));
    }

    @Override
    public long count() {
        return recorder.total().count();
    }

    @Override
    public double totalTime(TimeUnit unit) {
        return TimeUtils.nanosToUnit(sumNs(recorder.total()), unit);
    }

    /** Exact to 53 bits, also above the 292 years that a long holds. */
    private static double sumNs(Durations total) {
        long ns = total.sumNs();
        return ns == Long.MAX_VALUE ? total.sumSeconds() * NS : ns;
    }

    @Override
    public double max(TimeUnit unit) {
        return TimeUtils.nanosToUnit(window.latest(recorder.total()).maxNs().orElse(0), unit);
    }

    @Override
    public HistogramSnapshot takeSnapshot() {
        Durations total = recorder.total();
        return snapshots.of(total, sumNs(total), window.latest(total));
    }
}
