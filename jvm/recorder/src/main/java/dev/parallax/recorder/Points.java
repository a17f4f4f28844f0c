package dev.parallax.recorder;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Collects the points of one name, one per combination of labels: values of several sources are added up; of gauges the
 * first is kept.
 */
final class Points {
    private final Kind kind;
    private final Map<Map<String, String>, Family.Point> points = new LinkedHashMap<>();

    Points(Kind kind) {
        this.kind = kind;
    }

    void add(Family.Point point) {
        points.merge(point.labels(), point, this::sum);
    }

    private Family.Point sum(Family.Point a, Family.Point b) {
        if (kind == Kind.GAUGE) {
            return a;
        }
        // A name has one kind, so both points have the same type.
        return a instanceof Family.Value value
                ? new Family.Value(a.labels(), value.value() + ((Family.Value) b).value())
                : new Family.Histogram(a.labels(), sum(distribution(a), distribution(b)));
    }

    private static Distribution sum(Distribution a, Distribution b) {
        return a instanceof Durations durations ? durations.plus((Durations) b) : ((Amounts) a).plus((Amounts) b);
    }

    private static Distribution distribution(Family.Point point) {
        return ((Family.Histogram) point).distribution();
    }

    static Family.Point relabelled(Family.Point point, Map<String, String> labels) {
        return point instanceof Family.Value value
                ? new Family.Value(labels, value.value())
                : new Family.Histogram(labels, distribution(point));
    }

    boolean has(Map<String, String> labels) {
        return points.containsKey(labels);
    }

    int size() {
        return points.size();
    }

    List<Family.Point> list() {
        return List.copyOf(points.values());
    }
}
