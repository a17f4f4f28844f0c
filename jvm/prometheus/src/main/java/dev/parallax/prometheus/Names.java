package dev.parallax.prometheus;

import dev.parallax.recorder.Kind;
import io.prometheus.metrics.model.snapshots.Labels;
import io.prometheus.metrics.model.snapshots.PrometheusNaming;
import io.prometheus.metrics.model.snapshots.Unit;
import java.util.Map;
import java.util.TreeMap;

/** OpenTelemetry's names and units in the form of Prometheus, following OpenTelemetry's own rules. */
final class Names {
    /** Prometheus uses base units; for units without one, the word. */
    private static final Map<String, String> UNITS = Map.ofEntries(
            Map.entry("s", "seconds"),
            Map.entry("ms", "milliseconds"),
            Map.entry("us", "microseconds"),
            Map.entry("ns", "nanoseconds"),
            Map.entry("min", "minutes"),
            Map.entry("h", "hours"),
            Map.entry("d", "days"),
            Map.entry("By", "bytes"),
            Map.entry("KiBy", "kibibytes"),
            Map.entry("MiBy", "mebibytes"),
            Map.entry("GiBy", "gibibytes"),
            Map.entry("kBy", "kilobytes"),
            Map.entry("MBy", "megabytes"),
            Map.entry("GBy", "gigabytes"),
            Map.entry("Cel", "celsius"),
            Map.entry("Hz", "hertz"),
            Map.entry("J", "joules"),
            Map.entry("W", "watts"),
            Map.entry("V", "volts"),
            Map.entry("A", "amperes"),
            Map.entry("g", "grams"),
            Map.entry("m", "meters"),
            Map.entry("%", "percent"));

    private Names() {}

    /** Without the suffixes of a kind if the client adds them. A gauge has no suffix, so its name stays as it is. */
    static String metric(String name, Unit unit, Kind kind) {
        String plain = legacy(name, ":");
        return kind == Kind.GAUGE || kind == Kind.UP_DOWN
                ? PrometheusNaming.normalizeMetricName(plain, unit)
                : PrometheusNaming.sanitizeMetricName(plain, unit);
    }

    /** Null if the name would not contain a unit. */
    static Unit unit(String unit, Kind kind) {
        if (unit.equals("1")) {
            return kind == Kind.GAUGE ? Unit.RATIO : null;
        }
        StringBuilder words = new StringBuilder();
        for (String part : unit.replaceAll("\\{[^}]*}", "").split("/")) {
            String word = legacy(UNITS.getOrDefault(part, part), "").replaceAll("^_+|_+$", "");
            if (words.length() > 0 && !word.isEmpty()) {
                words.append("_per_").append(UNITS.containsKey(part) ? word.replaceAll("s$", "") : word);
            } else {
                words.append(word);
            }
        }
        return words.length() == 0 ? null : new Unit(words.toString());
    }

    /** An empty label is left out, and of two with the same name both values are kept. */
    static Labels labels(Map<String, String> labels) {
        Map<String, String> renamed = new TreeMap<>();
        labels.forEach((name, value) -> {
            if (!value.isEmpty()) {
                renamed.merge(label(name), value, (first, second) -> first + ";" + second);
            }
        });
        return Labels.of(renamed.keySet().toArray(new String[0]), renamed.values().toArray(new String[0]));
    }

    private static String label(String name) {
        String plain = legacy(name, "");
        while (plain.startsWith("__")) {
            plain = plain.substring(1);
        }
        return plain.equals("le") || plain.equals("quantile") ? "exported_" + plain : plain;
    }

    /** Letters, digits and the underscore, which every Prometheus accepts, not beginning with a digit. */
    private static String legacy(String name, String more) {
        StringBuilder plain = new StringBuilder(name.length());
        for (int i = 0; i < name.length(); i++) {
            char c = name.charAt(i);
            boolean isLetter = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || more.indexOf(c) >= 0;
            boolean isDigit = c >= '0' && c <= '9';
            plain.append(i == 0 && isDigit ? "_" : "").append(isLetter || isDigit ? c : '_');
        }
        return plain.length() == 0 ? "_" : plain.toString();
    }
}
