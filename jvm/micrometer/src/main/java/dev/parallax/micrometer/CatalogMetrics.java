package dev.parallax.micrometer;

import dev.parallax.recorder.Amounts;
import dev.parallax.recorder.Catalog;
import dev.parallax.recorder.Distribution;
import dev.parallax.recorder.Durations;
import dev.parallax.recorder.Family;
import io.micrometer.core.instrument.Clock;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.FunctionTimer;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Measurement;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Statistic;
import io.micrometer.core.instrument.Tag;
import io.micrometer.core.instrument.TimeGauge;
import io.micrometer.core.instrument.binder.MeterBinder;
import io.micrometer.core.instrument.distribution.DistributionStatisticConfig;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.ToDoubleFunction;

/**
 * Exports the series of a {@link Catalog} to any Micrometer registry.
 *
 * <pre>{@code
 * new CatalogMetrics(catalog).bindTo(registry);
 * }</pre>
 *
 * <p>Durations are function timers, with the recent maximum as {@code .max}, and recent percentiles as {@code
 * .percentile} if requested; amounts are distribution summaries of count, sum and maximum; what only grows is a
 * function counter, everything else a gauge. Micrometer's registries do not accept histograms; Prometheus' own
 * registry, which is inside Micrometer's, does: see {@code dev.parallax.prometheus}.
 *
 * <p>Cost: none when recording. When a meter is read and the last reading of the catalog is older than a second, the
 * catalog is read, and new series are registered: they appear in this scrape or in the next one. {@code
 * parallax.series} is the number of series.
 */
public final class CatalogMetrics implements MeterBinder {
    private static final System.Logger LOG = System.getLogger(CatalogMetrics.class.getName());

    private final Catalog catalog;
    private final Duration maxAge;
    private final double[] percentiles;

    /**
     * Without percentiles; read at most once per second.
     *
     * @param catalog to export
     */
    public CatalogMetrics(Catalog catalog) {
        this(catalog, Duration.ofSeconds(1), new double[0]);
    }

    private CatalogMetrics(Catalog catalog, Duration maxAge, double[] percentiles) {
        this.catalog = catalog;
        this.maxAge = maxAge;
        this.percentiles = percentiles;
    }

    /**
     * With another maximum age of a reading. All meters of a scrape should come from one reading, so the age must be
     * longer than a scrape takes.
     *
     * @param age by the registry's clock
     * @return another binder
     */
    public CatalogMetrics withMaxAge(Duration age) {
        return new CatalogMetrics(catalog, age, percentiles);
    }

    /**
     * With percentiles of durations, as gauges.
     *
     * @param wanted as 0.99
     * @return another binder
     */
    public CatalogMetrics withPercentiles(double... wanted) {
        return new CatalogMetrics(catalog, maxAge, wanted.clone());
    }

    @Override
    public void bindTo(MeterRegistry registry) {
        if (registry instanceof ParallaxMeterRegistry ours && ours.catalog() == catalog) {
            LOG.log(Level.WARNING, "the registry's meters are already in this catalog; not bound");
            return;
        }
        Binding binding = new Binding(registry);
        Gauge.builder("parallax.series", binding, Binding::size)
                .description("Series that are shown here.")
                .strongReference(true)
                .register(registry);
        binding.refresh();
    }

    /** The series of one registry. */
    private final class Binding {
        private final MeterRegistry registry;
        private final Clock clock;
        private final ReentrantLock reading = new ReentrantLock();
        private final Map<Key, Series> all = new HashMap<>();
        private volatile long readAtNs;
        private volatile int size;

        private record Key(String name, Map<String, String> labels) {}

        Binding(MeterRegistry registry) {
            this.registry = registry;
            clock = registry.config().clock();
            readAtNs = clock.monotonicTime() - maxAge.toNanos();
        }

        double size() {
            refresh();
            return size;
        }

        /** If another thread is reading, the previous reading is used: no thread waits. */
        void refresh() {
            if (clock.monotonicTime() - readAtNs < maxAge.toNanos() || !reading.tryLock()) {
                return;
            }
            try {
                if (clock.monotonicTime() - readAtNs >= maxAge.toNanos()) {
                    readAtNs = clock.monotonicTime();
                    read();
                }
            } finally {
                reading.unlock();
            }
        }

        private void read() {
            Set<Key> seen = new HashSet<>();
            for (Family family : catalog.read()) {
                for (Family.Point point : family.points()) {
                    Key key = new Key(family.name(), point.labels());
                    seen.add(key);
                    Series series = all.get(key);
                    if (series == null) {
                        series = new Series(this, point);
                        all.put(key, series);
                        series.register(family);
                    }
                    series.is(point);
                }
            }
            all.entrySet().removeIf(entry -> {
                boolean isGone = !seen.contains(entry.getKey());
                if (isGone) {
                    entry.getValue().meters.forEach(registry::remove);
                }
                return isGone;
            });
            size = all.size();
        }
    }

    /** One series with its meters. */
    private final class Series {
        private final Binding binding;
        private final List<Meter> meters = new ArrayList<>();
        private final Window<Distribution> window;
        private volatile Family.Point point;
        private volatile Distribution latest = Durations.NONE;

        Series(Binding binding, Family.Point point) {
            this.binding = binding;
            this.point = point;
            Distribution none = spread() instanceof Amounts ? Amounts.NONE : Durations.NONE;
            window = new Window<>(binding.clock, DistributionStatisticConfig.DEFAULT, none, Distribution::since);
        }

        void is(Family.Point point) {
            this.point = point;
            if (point instanceof Family.Histogram spread) {
                latest = window.latest(spread.distribution());
            }
        }

        private Distribution spread() {
            return point instanceof Family.Histogram spread ? spread.distribution() : Durations.NONE;
        }

        private double value() {
            return point instanceof Family.Value value ? value.value() : Double.NaN;
        }

        private double read(ToDoubleFunction<Series> value) {
            binding.refresh();
            return value.applyAsDouble(this);
        }

        /** The functions capture this object, because Micrometer holds the objects of function meters only weakly. */
        void register(Family family) {
            String name = family.name();
            List<Tag> tags = new ArrayList<>();
            point.labels().forEach((label, value) -> tags.add(Tag.of(label, value)));
            String help = family.help();
            String unit = Units.word(family.unit());
            try {
                switch (family.kind()) {
                    case DURATIONS -> registerTimer(name, tags, help);
                    case AMOUNTS -> meters.add(Meter.builder(name, Meter.Type.DISTRIBUTION_SUMMARY, measurements())
                            .tags(tags)
                            .description(help)
                            .baseUnit(unit)
                            .register(binding.registry));
                    case COUNTER -> meters.add(FunctionCounter.builder(name, this, self -> read(Series::value))
                            .tags(tags)
                            .description(help)
                            .baseUnit(unit)
                            .register(binding.registry));
                    case UP_DOWN, GAUGE -> meters.add(Gauge.builder(name, this, self -> read(Series::value))
                            .tags(tags)
                            .description(help)
                            .baseUnit(unit)
                            .strongReference(true)
                            .register(binding.registry));
                }
            } catch (RuntimeException e) {
                // A registry that has the name for a meter of another type refuses it: the other meters are still
                // registered.
                LOG.log(Level.WARNING, "not shown in Micrometer: {0}: {1}", name, e.getMessage());
            }
        }

        private void registerTimer(String name, List<Tag> tags, String help) {
            meters.add(FunctionTimer.builder(
                            name,
                            this,
                            self -> (long) read(series -> series.spread().count()),
                            self -> read(series -> series.spread().sum()),
                            TimeUnit.SECONDS)
                    .tags(tags)
                    .description(help)
                    .register(binding.registry));
            meters.add(TimeGauge.builder(
                            name + ".max",
                            this,
                            TimeUnit.SECONDS,
                            self -> read(series -> series.latest.max().orElse(Double.NaN)))
                    .tags(tags)
                    .description(help)
                    .strongReference(true)
                    .register(binding.registry));
            for (double percentile : percentiles) {
                meters.add(TimeGauge.builder(
                                name + ".percentile",
                                this,
                                TimeUnit.SECONDS,
                                self -> read(series ->
                                        Snapshots.percentile(series.latest, percentile).orElse(Double.NaN)))
                        .tags(tags)
                        .tag("phi", Double.toString(percentile))
                        .description(help)
                        .strongReference(true)
                        .register(binding.registry));
            }
        }

        private List<Measurement> measurements() {
            return List.of(
                    new Measurement(() -> read(series -> series.spread().count()), Statistic.COUNT),
                    new Measurement(() -> read(series -> series.spread().sum()), Statistic.TOTAL),
                    new Measurement(() -> read(series -> series.latest.max().orElse(Double.NaN)), Statistic.MAX));
        }
    }
}
