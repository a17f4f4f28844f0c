package dev.parallax.recorder;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What those had told that were closed while others of the same name and bound labels are shown: together one source, however
 * many they were. Not changed once it is seen.
 */
final class Gone extends Source {
    /** Series that come and go with new labels each time would have no end of them: those beyond are told as one. */
    static final int ROWS_MAX = 1000;

    static final Gone NONE = new Gone(List.of());

    private final List<Family.Point> points;

    private Gone(List<Family.Point> points) {
        super(null, List.of());
        this.points = points;
    }

    @Override
    List<Family.Point> now() {
        return points;
    }

    /** @param bound labels that are not among those of a row */
    Gone plus(List<Family.Point> more, Kind kind, Map<String, String> bound) {
        Points sum = new Points(kind);
        points.forEach(sum::add);
        for (Family.Point point : more) {
            sum.add(sum.size() < ROWS_MAX || sum.has(point.labels()) ? point : other(point, bound));
        }
        return new Gone(sum.list());
    }

    private static Family.Point other(Family.Point point, Map<String, String> bound) {
        Map<String, String> labels = new LinkedHashMap<>(point.labels());
        labels.replaceAll((label, value) -> bound.containsKey(label) ? value : OTHER);
        return Points.relabelled(point, Collections.unmodifiableMap(labels));
    }
}
