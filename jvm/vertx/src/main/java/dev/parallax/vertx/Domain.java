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
import java.util.function.Function;
import java.util.function.Supplier;

/** The series whose names begin alike. What a rule denies is recorded and shown nowhere. */
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
        return made(what, "", help, labels, options.catalog()::counter, Counter::new);
    }

    /** How many durations there are. */
    void count(String what, String help, Map<Label, String> labels, Recorder durations) {
        made(what, "", help, labels, described -> options.catalog().counter(described, durations), () -> null);
    }

    UpDownCounter upDownCounter(String what, String help, Map<Label, String> labels) {
        return made(what, "", help, labels, options.catalog()::upDownCounter, UpDownCounter::new);
    }

    Recorder durations(String what, String help, Map<Label, String> labels) {
        return made(what, "s", help, labels, options.catalog()::durations, Recorder::new);
    }

    /** Without a unit, as the names of bytes have it in them: readers that add a unit's name would change them. */
    AmountRecorder amounts(String what, String help, Map<Label, String> labels) {
        return made(what, "", help, labels, options.catalog()::amounts, AmountRecorder::new);
    }

    void gauge(String what, String help, Map<Label, String> labels, DoubleSupplier value) {
        made(what, "", help, labels, described -> options.catalog().gauge(described, value), () -> null);
    }

    /** Shown, or else recorded for nobody: this may be within a request, which is to know nothing of it. */
    private <T> T made(
            String what,
            String unit,
            String help,
            Map<Label, String> labels,
            Function<Description, T> shown,
            Supplier<T> hidden) {
        Map<String, String> texts = shown(labels);
        try {
            return texts == null
                    ? hidden.get()
                    : shown.apply(new Description("vertx." + name + "." + what, unit, help, texts));
        } catch (IllegalArgumentException e) {
            // The application has given the name to something else.
            return hidden.get();
        }
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
