package dev.parallax.vertx;

import dev.parallax.recorder.Catalog;
import java.util.List;
import java.util.Set;

/**
 * What is measured, and where it is shown.
 *
 * @param catalog all series are in it
 * @param labels that are on
 * @param disabled domains that are not measured, as {@code http.server}, {@code pool}, {@code eventbus}, {@code net.client},
 *     {@code datagram}, or the type of a client
 * @param matches rules for labels' values, each applied to what the one before left
 * @param rowsMax how many combinations of labels one kind of event may have; the rest is in one row, {@code _OTHER}
 */
public record SeriesOptions(Catalog catalog, Set<Label> labels, Set<String> disabled, List<Match> matches, int rowsMax) {
    /**
     * Keeps copies.
     *
     * @param catalog all series are in it
     * @param labels that are on
     * @param disabled domains that are not measured
     * @param matches rules for labels' values, each applied to what the one before left
     * @param rowsMax how many combinations of labels one kind of event may have
     */
    public SeriesOptions {
        labels = Set.copyOf(labels);
        disabled = Set.copyOf(disabled);
        matches = List.copyOf(matches);
    }

    /**
     * All domains, no rules, a thousand rows.
     *
     * @param catalog all series are going to be in it
     * @param labels that are on
     */
    public SeriesOptions(Catalog catalog, Set<Label> labels) {
        this(catalog, labels, Set.of(), List.of(), 1000);
    }

    /**
     * Whether a domain is measured.
     *
     * @param domain as {@code http.server}
     * @return not where it is disabled
     */
    public boolean isEnabled(String domain) {
        return !disabled.contains(domain);
    }
}
