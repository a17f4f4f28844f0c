package dev.parallax.springboot;

import dev.parallax.recorder.Distribution;
import dev.parallax.recorder.Family;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalDouble;

/** Series at one moment, as text or data. A percentile is left out if there are too few values for it. */
record Snapshot(List<Family> families) {
    private static final double[] QUANTILES = {0.5, 0.9, 0.99, 0.999};
    private static final String[] NAMES = {"p50", "p90", "p99", "p99.9"};

    /** One line per series. */
    String text() {
        StringBuilder text = new StringBuilder();
        for (Family family : families) {
            for (Family.Point point : family.points()) {
                text.append(family.name()).append(labels(point.labels())).append(' ');
                text.append(value(point, family.unit())).append('\n');
            }
        }
        return text.toString();
    }

    private static String labels(Map<String, String> labels) {
        List<String> all = new ArrayList<>();
        labels.forEach((name, value) -> all.add(name + "=\"" + quoted(value) + "\""));
        return all.isEmpty() ? "" : "{" + String.join(",", all) + "}";
    }

    /** A value may come from outside: it must not start a new line. */
    private static String quoted(String value) {
        return value.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n").replace("\r", "\\r");
    }

    private static String value(Family.Point point, String unit) {
        if (point instanceof Family.Value value) {
            return amount(value.value(), unit);
        }
        Distribution all = ((Family.Histogram) point).distribution();
        StringBuilder text = new StringBuilder("count ").append(all.count());
        if (all.count() > 0) {
            text.append(" mean ").append(amount(all.sum() / all.count(), unit));
        }
        for (int n = 0; n < QUANTILES.length; n++) {
            OptionalDouble value = all.quantile(QUANTILES[n]);
            if (value.isPresent()) {
                text.append(' ').append(NAMES[n]).append(' ').append(amount(value.getAsDouble(), unit));
            }
        }
        all.max().ifPresent(max -> text.append(" max ").append(amount(max, unit)));
        return text.toString();
    }

    private static String amount(double value, String unit) {
        if (!unit.equals("s")) {
            return value == Math.rint(value) && Math.abs(value) < 1e15 ? Long.toString((long) value) : Double.toString(value);
        }
        return value >= 1
                ? String.format(Locale.ROOT, "%.3fs", value)
                : value >= 1e-3
                        ? String.format(Locale.ROOT, "%.2fms", value * 1e3)
                        : String.format(Locale.ROOT, "%.1fus", value * 1e6);
    }

    /** Maps and lists, for any JSON writer. Values are in the series' unit. */
    Map<String, Object> tree() {
        List<Object> series = new ArrayList<>();
        for (Family family : families) {
            Map<String, Object> one = new LinkedHashMap<>();
            one.put("name", family.name());
            one.put("unit", family.unit());
            one.put("help", family.help());
            one.put("kind", family.kind().name().toLowerCase(Locale.ROOT));
            one.put("points", family.points().stream().map(Snapshot::tree).toList());
            series.add(one);
        }
        return Map.of("series", series);
    }

    private static Map<String, Object> tree(Family.Point point) {
        Map<String, Object> tree = new LinkedHashMap<>();
        tree.put("labels", point.labels());
        if (point instanceof Family.Value value) {
            tree.put("value", value.value());
            return tree;
        }
        Distribution all = ((Family.Histogram) point).distribution();
        tree.put("count", all.count());
        tree.put("sum", all.sum());
        for (int n = 0; n < QUANTILES.length; n++) {
            String name = NAMES[n];
            all.quantile(QUANTILES[n]).ifPresent(value -> tree.put(name, value));
        }
        all.max().ifPresent(max -> tree.put("max", max));
        return tree;
    }
}
