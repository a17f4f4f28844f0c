package dev.parallax.vertx;

import dev.parallax.recorder.Rows;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * Series for each combination of labels, made when the first event of it comes and found from then on without a lock or
 * allocation.
 *
 * @param <T> the series that one event needs together
 */
final class Bound<T> {
    private static final String OTHER = "_OTHER";

    private final Map<Label, String> fixed;
    private final List<Label> labels;
    private final Function<Map<Label, String>, T> maker;

    /** Null where no label is known only with the event. */
    private final Rows<Slot<T>> rows;

    private final Slot<T> alone = new Slot<>();

    private static final class Slot<T> {
        private volatile T series;
    }

    /**
     * @param fixed labels that are bound already
     * @param labels that come with the event
     * @param maker makes the series of all labels
     */
    Bound(int rowsMax, Map<Label, String> fixed, List<Label> labels, Function<Map<Label, String>, T> maker) {
        this.fixed = fixed;
        this.labels = labels;
        this.maker = maker;
        String[] names = labels.stream().map(label -> label.text).toArray(String[]::new);
        rows = names.length == 0 ? null : new Rows<>(rowsMax, Slot::new, names);
    }

    /** @param values in the order of the labels; the caller's to use again; those beyond the labels are not looked at */
    T get(String[] values) {
        Slot<T> slot = rows == null ? alone : rows.rowOf(values);
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
