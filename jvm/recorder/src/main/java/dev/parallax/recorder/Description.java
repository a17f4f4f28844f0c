package dev.parallax.recorder;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;

/**
 * Name, unit, help text and bound labels of a series. Names follow OpenTelemetry's semantic conventions where they
 * exist; each bridge converts them to the conventions of its tool.
 *
 * @param name for example {@code http.client.request.duration}
 * @param unit for example {@code s}, {@code By} or {@code {connection}}; always {@code s} for durations
 * @param help one sentence
 * @param labels that are known from the start, with their values
 */
public record Description(String name, String unit, String help, Map<String, String> labels) {
    /**
     * Copies the labels, keeping their order. A null unit, help text or label value becomes an empty string.
     *
     * @param name for example {@code http.client.request.duration}
     * @param unit for example {@code s}, {@code By} or {@code {connection}}; always {@code s} for durations
     * @param help one sentence
     * @param labels that are known from the start, with their values
     */
    public Description {
        if (name.isBlank()) {
            throw new IllegalArgumentException("a series needs a name");
        }
        unit = Objects.requireNonNullElse(unit, "");
        help = Objects.requireNonNullElse(help, "");
        Map<String, String> copy = new LinkedHashMap<>(labels);
        copy.replaceAll((label, value) -> Objects.requireNonNullElse(value, ""));
        labels = Collections.unmodifiableMap(copy);
    }

    /**
     * Describes a series without labels.
     *
     * @param name for example {@code http.client.request.duration}
     * @param unit for example {@code s}, {@code By} or {@code {connection}}
     * @param help one sentence
     * @return a new description
     */
    public static Description of(String name, String unit, String help) {
        return new Description(name, unit, help, Map.of());
    }

    /**
     * Describes durations, in seconds.
     *
     * @param name for example {@code http.client.request.duration}
     * @param help one sentence
     * @return a new description
     */
    public static Description of(String name, String help) {
        return of(name, "s", help);
    }

    /**
     * Binds a label.
     *
     * @param label its name
     * @param value its value; null becomes empty
     * @return a new description
     */
    public Description with(String label, String value) {
        Map<String, String> more = new LinkedHashMap<>(labels);
        more.put(label, value);
        return new Description(name, unit, help, more);
    }

    /**
     * Binds several labels.
     *
     * @param more names and values
     * @return a new description
     */
    public Description with(Map<String, String> more) {
        Map<String, String> all = new LinkedHashMap<>(labels);
        all.putAll(more);
        return new Description(name, unit, help, all);
    }
}
