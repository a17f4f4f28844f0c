package dev.parallax.recorder;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.DoubleSupplier;
import java.util.function.Function;
import java.util.function.Supplier;

/** What a catalog reads: one series, or the rows of one. */
abstract class Source {
    /** Label value for rows beyond the limit, as used by OpenTelemetry for values that are not distinguished. */
    static final String OTHER = "_OTHER";

    final Object series;

    /** Names of the labels that are known only after the event. */
    final List<String> eventLabels;

    private long readings;

    /** The values at the time of closing; null before. */
    private List<Family.Point> last;

    Source(Object series, List<String> eventLabels) {
        this.series = series;
        this.eventLabels = eventLabels;
    }

    /** The current values. Called without a lock, since it may call application code. */
    abstract List<Family.Point> current();

    /** The current values, or those at the time of closing. */
    final List<Family.Point> read() {
        List<Family.Point> now = current();
        synchronized (this) {
            readings++;
            return last == null ? now : last;
        }
    }

    /** Freezes the source: every later reading returns what this returns, and no earlier reading returned more. */
    final List<Family.Point> close() {
        while (true) {
            long before;
            synchronized (this) {
                before = readings;
            }
            List<Family.Point> now = current();
            synchronized (this) {
                // Somebody read in the meantime and may have seen more: try again.
                if (last == null && readings == before) {
                    last = now;
                }
                if (last != null) {
                    return last;
                }
            }
        }
    }

    static Source of(Map<String, String> labels, Recorder recorder) {
        return single(recorder, labels, recorder::total);
    }

    static Source of(Map<String, String> labels, AmountRecorder recorder) {
        return single(recorder, labels, recorder::total);
    }

    static Source of(Map<String, String> labels, Counter counter) {
        return single(counter, labels, counter::total);
    }

    static Source countOf(Map<String, String> labels, Recorder recorder) {
        return single(recorder, labels, () -> {
            Durations all = recorder.total();
            return all.count() + all.unusable();
        });
    }

    static Source of(Map<String, String> labels, UpDownCounter counter) {
        return single(counter, labels, counter::current);
    }

    /** A value that cannot be read is absent, not zero, and does not affect other series. */
    static Source of(Map<String, String> labels, DoubleSupplier supplier) {
        return single(supplier, labels, () -> {
            try {
                double value = supplier.getAsDouble();
                return Double.isNaN(value) ? null : value;
            } catch (RuntimeException | LinkageError e) {
                // A LinkageError comes from an application that has been unloaded.
                return null;
            }
        });
    }

    /** @param reading returns null if the series is absent */
    private static Source single(Object series, Map<String, String> labels, Supplier<Object> reading) {
        return new Source(series, List.of()) {
            @Override
            List<Family.Point> current() {
                Object value = reading.get();
                return value == null ? List.of() : List.of(point(labels, value));
            }
        };
    }

    private static Family.Point point(Map<String, String> labels, Object value) {
        return value instanceof Distribution spread
                ? new Family.Histogram(labels, spread)
                : new Family.Value(labels, ((Number) value).doubleValue());
    }

    /** @param reading of a row; the "other" row is shown only if it is not empty */
    static <T> Source of(Map<String, String> labels, Object series, Rows<T> rows, Function<T, Object> reading) {
        return new Source(series, rows.names()) {
            /** Labels of the rows so far; rows are only ever added. */
            private final List<Map<String, String>> known = new ArrayList<>();

            @Override
            synchronized List<Family.Point> current() {
                List<Family.Point> points = new ArrayList<>();
                List<Rows.Row<T>> all = rows.rows();
                for (int n = 0; n < all.size(); n++) {
                    if (n == known.size()) {
                        known.add(labels(all.get(n).values()));
                    }
                    points.add(point(known.get(n), reading.apply(all.get(n).series())));
                }
                Object other = reading.apply(rows.other());
                if (!isNothing(other)) {
                    points.add(point(labels(rows.names().stream().map(name -> OTHER).toList()), other));
                }
                return points;
            }

            private Map<String, String> labels(List<String> values) {
                Map<String, String> all = new LinkedHashMap<>(labels);
                for (int n = 0; n < values.size(); n++) {
                    all.put(rows.names().get(n), values.get(n));
                }
                return Collections.unmodifiableMap(all);
            }
        };
    }

    private static boolean isNothing(Object value) {
        return value instanceof Distribution spread ? spread.count() == 0 : ((Number) value).doubleValue() == 0;
    }
}
