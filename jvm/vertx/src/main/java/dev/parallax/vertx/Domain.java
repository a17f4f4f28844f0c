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

/** The series with a common name prefix. A series rejected by a rule is recorded but not registered. */
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

    /** Returns those of the labels that are enabled. */
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
        return create(what, "", help, labels, options.catalog()::counter, Counter::new);
    }

    /** Registers the number of durations as a counter. */
    void count(String what, String help, Map<Label, String> labels, Recorder durations) {
        create(what, "", help, labels, described -> options.catalog().counter(described, durations), () -> null);
    }

    UpDownCounter upDownCounter(String what, String help, Map<Label, String> labels) {
        return create(what, "", help, labels, options.catalog()::upDownCounter, UpDownCounter::new);
    }

    Recorder durations(String what, String help, Map<Label, String> labels) {
        return create(what, "s", help, labels, options.catalog()::durations, Recorder::new);
    }

    /** Without a unit: the names already contain "bytes", and bridges that append the unit would change them. */
    AmountRecorder amounts(String what, String help, Map<Label, String> labels) {
        return create(what, "", help, labels, options.catalog()::amounts, AmountRecorder::new);
    }

    void gauge(String what, String help, Map<Label, String> labels, DoubleSupplier value) {
        create(what, "", help, labels, described -> options.catalog().gauge(described, value), () -> null);
    }

    /**
     * Creates a registered series, or an unregistered one if that is not possible: this may run inside a request, which
     * must not fail because of it.
     */
    private <T> T create(
            String what,
            String unit,
            String help,
            Map<Label, String> labels,
            Function<Description, T> shown,
            Supplier<T> hidden) {
        Map<String, String> texts = applyRules(labels);
        try {
            return texts == null
                    ? hidden.get()
                    : shown.apply(new Description("vertx." + name + "." + what, unit, help, texts));
        } catch (IllegalArgumentException e) {
            // The application uses the name for something else.
            return hidden.get();
        }
    }

    /** Applies the rules; returns null if one rejects the series. */
    private Map<String, String> applyRules(Map<Label, String> labels) {
        Map<String, String> shown = new LinkedHashMap<>();
        labels.forEach((label, value) -> shown.put(label.text, value));
        for (Match match : options.matches()) {
            String value = shown.get(match.label().text);
            if (match.appliesTo(name) && match.alias() != null && match.matches(value)) {
                shown.put(match.label().text, match.alias());
            } else if (match.appliesTo(name) && match.alias() == null && !match.matches(value)) {
                return null;
            }
        }
        return shown;
    }
}
