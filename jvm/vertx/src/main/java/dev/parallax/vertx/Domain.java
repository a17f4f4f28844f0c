package dev.parallax.vertx;

import dev.parallax.recorder.AmountRecorder;
import dev.parallax.recorder.Counter;
import dev.parallax.recorder.Description;
import dev.parallax.recorder.Recorder;
import dev.parallax.recorder.UpDownCounter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.DoubleSupplier;

/** The series whose names begin alike. What a rule denies is recorded, and shown nowhere. */
final class Domain {
    private final SeriesOptions options;
    private final String name;

    Domain(SeriesOptions options, String name) {
        this.options = options;
        this.name = name;
    }

    boolean has(Label label) {
        return options.labels().contains(label);
    }

    int rowsMax() {
        return options.rowsMax();
    }

    /** Those that are on. */
    List<Label> on(Label... labels) {
        List<Label> on = new ArrayList<>();
        for (Label label : labels) {
            if (has(label)) {
                on.add(label);
            }
        }
        return on;
    }

    Counter counter(String what, String help, Map<Label, String> labels) {
        Map<String, String> shown = shown(labels);
        return shown == null ? new Counter() : options.catalog().counter(description(what, "", help, shown));
    }

    UpDownCounter upDown(String what, String help, Map<Label, String> labels) {
        Map<String, String> shown = shown(labels);
        return shown == null ? new UpDownCounter() : options.catalog().upDown(description(what, "", help, shown));
    }

    Recorder durations(String what, String help, Map<Label, String> labels) {
        Map<String, String> shown = shown(labels);
        return shown == null ? new Recorder() : options.catalog().durations(description(what, "s", help, shown));
    }

    /** Without a unit, as the names of bytes have it in them: readers that add a unit's name would change them. */
    AmountRecorder amounts(String what, String help, Map<Label, String> labels) {
        Map<String, String> shown = shown(labels);
        return shown == null ? new AmountRecorder() : options.catalog().amounts(description(what, "", help, shown));
    }

    void gauge(String what, String help, Map<Label, String> labels, DoubleSupplier value) {
        Map<String, String> shown = shown(labels);
        if (shown != null) {
            options.catalog().gauge(description(what, "", help, shown), value);
        }
    }

    private Description description(String what, String unit, String help, Map<String, String> labels) {
        return new Description("vertx." + name + "." + what, unit, help, labels);
    }

    /** By the rules; null where one denies it. */
    private Map<String, String> shown(Map<Label, String> labels) {
        Map<String, String> shown = new LinkedHashMap<>();
        labels.forEach((label, value) -> shown.put(label.text, value));
        for (Match match : options.matches()) {
            String value = shown.get(match.label().text);
            if (match.isOf(name) && match.alias() != null && match.fits(value)) {
                shown.put(match.label().text, match.alias());
            } else if (match.isOf(name) && match.alias() == null && !match.fits(value)) {
                return null;
            }
        }
        return shown;
    }
}
