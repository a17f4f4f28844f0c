package dev.parallax.recorder;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The last totals of closed registrations whose name and bound labels are still registered by others; one source,
 * however many were closed. Immutable.
 */
final class ClosedTotals extends Source {
    /**
     * Series that come and go with new labels each time would grow without end: rows beyond this limit are merged into
     * one.
     */
    static final int ROWS_MAX = 1000;

    static final ClosedTotals NONE = new ClosedTotals(List.of());

    private final List<Family.Point> points;

    private ClosedTotals(List<Family.Point> points) {
        super(null, List.of());
        this.points = points;
    }

    @Override
    List<Family.Point> current() {
        return points;
    }

    /** @param bound labels that are not event labels */
    ClosedTotals plus(List<Family.Point> more, Kind kind, Map<String, String> bound) {
        Points sum = new Points(kind);
        points.forEach(sum::add);
        for (Family.Point point : more) {
            sum.add(sum.size() < ROWS_MAX || sum.has(point.labels()) ? point : other(point, bound));
        }
        return new ClosedTotals(sum.list());
    }

    private static Family.Point other(Family.Point point, Map<String, String> bound) {
        Map<String, String> labels = new LinkedHashMap<>(point.labels());
        labels.replaceAll((label, value) -> bound.containsKey(label) ? value : OTHER);
        return Points.relabelled(point, Collections.unmodifiableMap(labels));
    }
}
