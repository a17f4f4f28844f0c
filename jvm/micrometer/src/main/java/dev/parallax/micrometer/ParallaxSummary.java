package dev.parallax.micrometer;

import dev.parallax.recorder.AmountRecorder;
import dev.parallax.recorder.Amounts;
import io.micrometer.core.instrument.AbstractDistributionSummary;
import io.micrometer.core.instrument.Clock;
import io.micrometer.core.instrument.distribution.DistributionStatisticConfig;
import io.micrometer.core.instrument.distribution.HistogramSnapshot;
import io.micrometer.core.instrument.distribution.NoopHistogram;

/** A summary that is an {@link AmountRecorder}. */
final class ParallaxSummary extends AbstractDistributionSummary {
    private final AmountRecorder recorder = new AmountRecorder();
    private final Window<Amounts> window;
    private final Snapshots snapshots;

    ParallaxSummary(Id id, Clock clock, DistributionStatisticConfig config, double scale) {
        super(id, scale, NoopHistogram.INSTANCE);
        window = new Window<>(clock, config, Amounts.NONE, Amounts::since);
        snapshots = new Snapshots(config, 1);
    }

    AmountRecorder recorder() {
        return recorder;
    }

    @Override
    protected void recordNonNegative(double amount) {
        recorder.record(amount);
    }

    @Override
    public long count() {
        return recorder.total().count();
    }

    @Override
    public double totalAmount() {
        return recorder.total().sum();
    }

    @Override
    public double max() {
        return window.latest(recorder.total()).max().orElse(0);
    }

    @Override
    public HistogramSnapshot takeSnapshot() {
        Amounts total = recorder.total();
        return snapshots.of(total, total.sum(), window.latest(total));
    }
}
