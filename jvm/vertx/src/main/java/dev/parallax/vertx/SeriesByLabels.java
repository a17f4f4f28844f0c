package dev.parallax.vertx;

import dev.parallax.recorder.Rows;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * Series by combination of labels, created on the first event with that combination and found without a lock or
 * allocation afterwards.
 *
 * @param <T> the series that one event needs together
 */
final class SeriesByLabels<T> {
    private static final String OTHER = "_OTHER";

    private final Map<Label, String> fixed;
    private final List<Label> labels;
    private final Function<Map<Label, String>, T> maker;

    /** Null if all labels are known in advance. */
    private final Rows<Slot<T>> rows;

    private final Slot<T> single = new Slot<>();

    private static final class Slot<T> {
        private volatile T series;
    }

    /**
     * @param fixed labels that are known in advance
     * @param labels that are known at the event
     * @param maker creates the series for all labels
     */
    SeriesByLabels(int rowsMax, Map<Label, String> fixed, List<Label> labels, Function<Map<Label, String>, T> maker) {
        this.fixed = fixed;
        this.labels = labels;
        this.maker = maker;
        String[] names = labels.stream().map(label -> label.text).toArray(String[]::new);
        rows = names.length == 0 ? null : new Rows<>(rowsMax, Slot::new, names);
    }

    /** @param values in the order of the labels; may be reused by the caller; extra values are ignored */
    T get(String[] values) {
        Slot<T> slot = rows == null ? single : rows.rowOf(values);
        T series = slot.series;
        return series != null ? series : fill(slot, values);
    }

    private T fill(Slot<T> slot, String[] values) {
        synchronized (slot) {
            if (slot.series == null) {
                Map<Label, String> all = new EnumMap<>(Label.class);
                all.putAll(fixed);
                for (int n = 0; n < labels.size(); n++) {
                    String value = values[n] == null ? "" : values[n];
                    all.put(labels.get(n), rows != null && slot == rows.other() ? OTHER : value);
                }
                slot.series = maker.apply(all);
            }
            return slot.series;
        }
    }
}
