package dev.parallax.recorder;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.DoubleSupplier;
import java.util.function.Function;

/** What a catalog reads: one series, or the rows of one. */
abstract class Source {
    /** Of those beyond the limit: OpenTelemetry's word for a value that is not told apart. */
    static final String OTHER = "_OTHER";

    final Object series;

    /** Names of the labels that are known only after the event. */
    final List<String> eventLabels;

    private Source(Object series, List<String> eventLabels) {
        this.series = series;
        this.eventLabels = eventLabels;
    }

    abstract void read(Points into);

    static Source of(Map<String, String> labels, Recorder recorder) {
        return single(recorder, into -> into.add(labels, recorder.total()));
    }

    static Source of(Map<String, String> labels, AmountRecorder recorder) {
        return single(recorder, into -> into.add(labels, recorder.total()));
    }

    static Source of(Map<String, String> labels, Counter counter) {
        return single(counter, into -> into.add(labels, counter.total()));
    }

    static Source countOf(Map<String, String> labels, Recorder recorder) {
        return single(recorder, into -> {
            Durations all = recorder.total();
            into.add(labels, (double) (all.count() + all.unusable()));
        });
    }

    static Source of(Map<String, String> labels, UpDownCounter counter) {
        return single(counter, into -> into.add(labels, counter.now()));
    }

    /** What cannot tell is absent: that is not zero, and no reason for the others to be. */
    static Source of(Map<String, String> labels, DoubleSupplier supplier) {
        return single(supplier, into -> {
            double value;
            try {
                value = supplier.getAsDouble();
            } catch (RuntimeException | LinkageError e) {
                // The latter of an application that was taken down around it.
                return;
            }
            if (!Double.isNaN(value)) {
                into.add(labels, value);
            }
        });
    }

    private static Source single(Object series, Consumer<Points> reading) {
        return new Source(series, List.of()) {
            @Override
            void read(Points into) {
                reading.accept(into);
            }
        };
    }

    /** @param reading of a row; of the "other" row it is shown only where there is something in it */
    static <T> Source of(Map<String, String> labels, Object series, Rows<T> rows, Function<T, Object> reading) {
        return new Source(series, rows.names()) {
            /** Of the rows so far: they only grow. */
            private final List<Map<String, String>> known = new ArrayList<>();

            @Override
            synchronized void read(Points into) {
                List<Rows.Row<T>> all = rows.rows();
                for (int n = 0; n < all.size(); n++) {
                    if (n == known.size()) {
                        known.add(labels(all.get(n).values()));
                    }
                    into.add(known.get(n), reading.apply(all.get(n).series()));
                }
                Object other = reading.apply(rows.other());
                if (!Points.isNothing(other)) {
                    into.add(labels(rows.names().stream().map(name -> OTHER).toList()), other);
                }
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
}
