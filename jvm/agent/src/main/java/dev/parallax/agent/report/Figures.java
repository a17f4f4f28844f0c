package dev.parallax.agent.report;

import dev.parallax.recorder.Durations;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalLong;
import java.util.TreeMap;

/**
 * All series at one moment, as text and as JSON. Percentiles that the sample is too small for are omitted from both.
 */
final class Figures implements Reader {
    private static final double[] QUANTILES = {0.5, 0.9, 0.99, 0.999};

    private final Map<Key, Durations> durations = new TreeMap<>();
    private final Map<Key, Long> numbers = new TreeMap<>();

    private Figures() {}

    private record Key(Series series, String label) implements Comparable<Key> {
        @Override
        public int compareTo(Key other) {
            int order = series.compareTo(other.series);
            return order != 0 ? order : label.compareTo(other.label);
        }
    }

    static Figures of(List<Source> sources) {
        Figures now = new Figures();
        for (Source source : sources) {
            source.read(now);
        }
        return now;
    }

    @Override
    public void durations(Series series, String label, Durations total) {
        if (total.count() > 0) {
            durations.merge(new Key(series, label), total, Durations::plus);
        }
    }

    @Override
    public void number(Series series, String label, long value) {
        numbers.merge(new Key(series, label), value, Long::sum);
    }

    /** One line per series, in milliseconds. */
    String text() {
        StringBuilder text = new StringBuilder(String.format(
                Locale.ROOT, "%-60s %10s %10s %10s %10s %10s %10s%n",
                "milliseconds", "count", "p50", "p90", "p99", "p99.9", "max"));
        durations.forEach((key, total) -> {
            text.append(String.format(Locale.ROOT, "%-60s %10d", name(key), total.count()));
            for (double quantile : QUANTILES) {
                text.append(String.format(Locale.ROOT, " %10s", ms(total.quantileNs(quantile))));
            }
            text.append(String.format(Locale.ROOT, " %10s%n", ms(total.maxNs())));
        });
        numbers.forEach((key, value) -> text.append(String.format(Locale.ROOT, "%-60s %10d%n", name(key), value)));
        return text.toString();
    }

    private static String name(Key key) {
        return key.label.isEmpty() ? key.series.title() : key.series.title() + " " + key.label.replaceAll("\\s", "_");
    }

    private static String ms(OptionalLong ns) {
        return ns.isPresent() ? String.format(Locale.ROOT, "%.3f", ns.getAsLong() / 1e6) : "too few";
    }

    /** One object, in nanoseconds. */
    String json() {
        StringBuilder text = new StringBuilder("{\"series\":[");
        String separator = "";
        for (Map.Entry<Key, Durations> one : durations.entrySet()) {
            Durations total = one.getValue();
            text.append(separator).append(head(one.getKey()))
                    .append(",\"count\":").append(total.count())
                    .append(",\"sum_ns\":").append(total.sumNs());
            for (double quantile : QUANTILES) {
                total.quantileNs(quantile).ifPresent(
                        ns -> text.append(",\"p").append(quantile * 100).append("_ns\":").append(ns));
            }
            text.append(",\"max_ns\":").append(total.maxNs().orElse(0)).append('}');
            separator = ",";
        }
        for (Map.Entry<Key, Long> one : numbers.entrySet()) {
            text.append(separator).append(head(one.getKey())).append(",\"value\":").append(one.getValue()).append('}');
            separator = ",";
        }
        return text.append("]}\n").toString();
    }

    private static String head(Key key) {
        return "{\"name\":\"" + key.series.title() + "\",\"label\":\"" + quoted(key.label) + "\"";
    }

    /** Labels come from the application: host and pool names. */
    private static String quoted(String label) {
        StringBuilder text = new StringBuilder();
        for (char c : label.toCharArray()) {
            if (c == '"' || c == '\\' || c < ' ' || c > '~') {
                text.append(String.format(Locale.ROOT, "\\u%04x", (int) c));
            } else {
                text.append(c);
            }
        }
        return text.toString();
    }
}
