package dev.parallax.micrometer;

import dev.parallax.recorder.Catalog;
import dev.parallax.recorder.Description;
import dev.parallax.recorder.Registration;
import io.micrometer.core.instrument.Clock;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.DistributionSummary;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.FunctionTimer;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.LongTaskTimer;
import io.micrometer.core.instrument.Measurement;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tag;
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.config.NamingConvention;
import io.micrometer.core.instrument.cumulative.CumulativeFunctionCounter;
import io.micrometer.core.instrument.cumulative.CumulativeFunctionTimer;
import io.micrometer.core.instrument.distribution.DistributionStatisticConfig;
import io.micrometer.core.instrument.distribution.pause.PauseDetector;
import io.micrometer.core.instrument.internal.DefaultGauge;
import io.micrometer.core.instrument.internal.DefaultLongTaskTimer;
import io.micrometer.core.instrument.internal.DefaultMeter;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.function.ToDoubleFunction;
import java.util.function.ToLongFunction;

/**
 * A Micrometer registry whose timers, summaries and counters are Parallax's: no lock, no allocation, no contention.
 *
 * <pre>{@code
 * MeterRegistry registry = new ParallaxMeterRegistry(catalog);
 * }</pre>
 *
 * <p>Code that uses Micrometer stays unchanged. Each timer and summary has a full histogram even if none was requested,
 * because it costs nothing more. All meters are in the catalog under Micrometer's names and tags, so each bridge
 * exports them. A meter whose name exists with another kind is measured but not exported, and that is logged once.
 *
 * <p>Counts, sums and buckets are totals. Percentiles and maximums cover recent time, as Micrometer's do: the time that
 * {@code expiry} defines, or the time since the reading before, if readings are less frequent. A pause detector is not
 * used: what was missed is derived from exact pauses when a series is read, and is not mixed into what was recorded.
 *
 * <p>There are two differences from Micrometer's own registries: a bound of a histogram, or a percentile, may be up to
 * one part in 128 too large, and a timer does not accept durations above 13 days.
 *
 * <p>In the catalog a long task timer is {@code .active} and {@code .duration}; a function timer is {@code .count} and
 * {@code .total}; for a custom meter the first measurement of each kind is a gauge with the label {@code statistic}.
 */
public final class ParallaxMeterRegistry extends MeterRegistry {
    private static final System.Logger LOG = System.getLogger(ParallaxMeterRegistry.class.getName());

    private final Catalog catalog;
    private final Map<Meter.Id, List<Registration>> shown = new ConcurrentHashMap<>();

    /** Names that were logged, so that each is logged only once. */
    private final Set<String> refused = ConcurrentHashMap.newKeySet();

    /**
     * Uses the system's clock.
     *
     * @param catalog to register the meters in
     */
    public ParallaxMeterRegistry(Catalog catalog) {
        this(catalog, Clock.SYSTEM);
    }

    /**
     * Uses another clock.
     *
     * @param catalog to register the meters in
     * @param clock of the samples, and of the recent window
     */
    public ParallaxMeterRegistry(Catalog catalog, Clock clock) {
        super(clock);
        this.catalog = catalog;
        config().namingConvention(NamingConvention.dot);
        config().onMeterRemoved(meter -> hide(meter.getId()));
    }

    /**
     * The catalog in which the meters are registered.
     *
     * @return the constructor's argument
     */
    public Catalog catalog() {
        return catalog;
    }

    @Override
    protected Timer newTimer(Meter.Id id, DistributionStatisticConfig config, PauseDetector pauseDetector) {
        ParallaxTimer timer = new ParallaxTimer(id, clock, config);
        show(id, () -> catalog.durations(description(id, "", "s"), timer.recorder()));
        return timer;
    }

    @Override
    protected DistributionSummary newDistributionSummary(
            Meter.Id id, DistributionStatisticConfig config, double scale) {
        ParallaxSummary summary = new ParallaxSummary(id, clock, config, scale);
        show(id, () -> catalog.amounts(description(id, "", unit(id)), summary.recorder()));
        return summary;
    }

    @Override
    protected Counter newCounter(Meter.Id id) {
        ParallaxCounter counter = new ParallaxCounter(id);
        show(id, () -> catalog.counter(description(id, "", unit(id)), counter::count));
        return counter;
    }

    @Override
    protected <T> Gauge newGauge(Meter.Id id, T of, ToDoubleFunction<T> value) {
        Gauge gauge = new DefaultGauge<>(id, of, value);
        show(id, () -> catalog.gauge(description(id, "", unit(id)), gauge::value));
        return gauge;
    }

    @Override
    protected <T> FunctionCounter newFunctionCounter(Meter.Id id, T of, ToDoubleFunction<T> count) {
        FunctionCounter counter = new CumulativeFunctionCounter<>(id, of, count);
        show(id, () -> catalog.counter(description(id, "", unit(id)), counter::count));
        return counter;
    }

    @Override
    protected <T> FunctionTimer newFunctionTimer(
            Meter.Id id, T of, ToLongFunction<T> count, ToDoubleFunction<T> total, TimeUnit unit) {
        FunctionTimer timer = new CumulativeFunctionTimer<>(id, of, count, total, unit, TimeUnit.SECONDS);
        show(id, () -> catalog.counter(description(id, ".count", ""), timer::count));
        show(id, () -> catalog.counter(description(id, ".total", "s"), () -> timer.totalTime(TimeUnit.SECONDS)));
        return timer;
    }

    @Override
    protected LongTaskTimer newLongTaskTimer(Meter.Id id, DistributionStatisticConfig config) {
        LongTaskTimer timer = new DefaultLongTaskTimer(id, clock, TimeUnit.SECONDS, config, true);
        show(id, () -> catalog.upDownCounter(description(id, ".active", ""), timer::activeTasks));
        show(id, () -> catalog.gauge(description(id, ".duration", "s"), () -> timer.duration(TimeUnit.SECONDS)));
        return timer;
    }

    @Override
    protected Meter newMeter(Meter.Id id, Meter.Type type, Iterable<Measurement> measurements) {
        for (Measurement measurement : measurements) {
            String statistic = measurement.getStatistic().getTagValueRepresentation();
            Description description = description(id, "", unit(id)).with("statistic", statistic);
            show(id, () -> catalog.gauge(description, measurement::getValue));
        }
        return new DefaultMeter(id, type, measurements);
    }

    @Override
    protected TimeUnit getBaseTimeUnit() {
        return TimeUnit.SECONDS;
    }

    @Override
    protected DistributionStatisticConfig defaultHistogramConfig() {
        return DistributionStatisticConfig.DEFAULT;
    }

    /** Meters continue to record, but are no longer exported. */
    @Override
    public void close() {
        super.close();
        List.copyOf(shown.keySet()).forEach(this::hide);
    }

    private Description description(Meter.Id id, String suffix, String unit) {
        NamingConvention convention = config().namingConvention();
        String help = id.getDescription() == null ? "" : id.getDescription();
        Description description = Description.of(id.getConventionName(convention) + suffix, unit, help);
        for (Tag tag : id.getConventionTags(convention)) {
            description = description.with(tag.getKey(), tag.getValue());
        }
        return description;
    }

    private static String unit(Meter.Id id) {
        return Units.symbol(id.getBaseUnit());
    }

    /** An error from the catalog must not fail the application's code. */
    private void show(Meter.Id id, Supplier<Registration> showing) {
        try {
            Registration registration = showing.get();
            shown.computeIfAbsent(id, key -> new ArrayList<>()).add(registration);
        } catch (IllegalArgumentException e) {
            meterRegistrationFailed(id, e.getMessage());
            if (refused.add(id.getName())) {
                LOG.log(Level.WARNING, "measured and not shown: {0}", e.getMessage());
            }
        }
    }

    private void hide(Meter.Id id) {
        List<Registration> registrations = shown.remove(id);
        if (registrations != null) {
            registrations.forEach(Registration::close);
        }
    }
}
