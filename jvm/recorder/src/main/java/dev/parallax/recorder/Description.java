package dev.parallax.recorder;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;

/**
 * What a series is called and what it tells. Names, units and labels are those of OpenTelemetry's semantic conventions where
 * they have some; each bridge turns them into what its readers expect.
 *
 * @param name as {@code http.client.request.duration}
 * @param unit as {@code s}, {@code By} or {@code {connection}}; of durations always {@code s}
 * @param help one sentence
 * @param labels that are known from the start, each with its value
 */
public record Description(String name, String unit, String help, Map<String, String> labels) {
    /**
     * Keeps a copy of the labels, in their order. A value that is null counts as empty, and so do unit and help.
     *
     * @param name as {@code http.client.request.duration}
     * @param unit as {@code s}, {@code By} or {@code {connection}}; of durations always {@code s}
     * @param help one sentence
     * @param labels that are known from the start, each with its value
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
     * Without labels.
     *
     * @param name as {@code http.client.request.duration}
     * @param unit as {@code s}, {@code By} or {@code {connection}}
     * @param help one sentence
     * @return to be given labels, or to a catalog
     */
    public static Description of(String name, String unit, String help) {
        return new Description(name, unit, help, Map.of());
    }

    /**
     * Of durations, whose unit is the second.
     *
     * @param name as {@code http.client.request.duration}
     * @param help one sentence
     * @return to be given labels, or to a catalog
     */
    public static Description of(String name, String help) {
        return of(name, "s", help);
    }

    /**
     * With a label bound.
     *
     * @param label its name
     * @param value its value; null counts as empty
     * @return another one
     */
    public Description with(String label, String value) {
        Map<String, String> more = new LinkedHashMap<>(labels);
        more.put(label, value);
        return new Description(name, unit, help, more);
    }

    /**
     * With several labels bound.
     *
     * @param more each with its value
     * @return another one
     */
    public Description with(Map<String, String> more) {
        Map<String, String> all = new LinkedHashMap<>(labels);
        all.putAll(more);
        return new Description(name, unit, help, all);
    }
}
