package dev.parallax.recorder;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Gathers the points of one name. Of the same labels there is one: what several tell is added up, and of what cannot be, the
 * first is kept.
 */
final class Points {
    private final Kind kind;
    private final Map<Map<String, String>, Object> values = new LinkedHashMap<>();

    Points(Kind kind) {
        this.kind = kind;
    }

    void add(Map<String, String> labels, Object value) {
        values.merge(labels, value, this::sum);
    }

    private Object sum(Object a, Object b) {
        if (kind == Kind.GAUGE) {
            return a;
        }
        // A name is of one kind, so both are of one type.
        if (a instanceof Durations durations) {
            return durations.plus((Durations) b);
        }
        if (a instanceof Amounts amounts) {
            return amounts.plus((Amounts) b);
        }
        return ((Number) a).doubleValue() + ((Number) b).doubleValue();
    }

    static boolean isNothing(Object value) {
        return value instanceof Distribution spread ? spread.count() == 0 : ((Number) value).doubleValue() == 0;
    }

    List<Family.Point> list() {
        List<Family.Point> points = new ArrayList<>(values.size());
        values.forEach((labels, value) -> points.add(
                value instanceof Distribution spread
                        ? new Family.Spread(labels, spread)
                        : new Family.Value(labels, ((Number) value).doubleValue())));
        return points;
    }
}
