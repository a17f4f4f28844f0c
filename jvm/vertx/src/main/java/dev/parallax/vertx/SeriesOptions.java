package dev.parallax.vertx;

import dev.parallax.recorder.Catalog;
import java.util.List;
import java.util.Set;

/**
 * Selects what is measured and where it is registered.
 *
 * @param catalog to register all series in
 * @param labels that are enabled
 * @param disabled domains that are not measured, for example {@code http.server}, {@code pool}, {@code eventbus},
 *     {@code net.client}, {@code datagram}, or the type of a client
 * @param matches rules for label values, each applied to the result of the previous one
 * @param rowsMax maximum number of label combinations per kind of event; the rest goes to one row, {@code _OTHER}
 */
public record SeriesOptions(Catalog catalog, Set<Label> labels, Set<String> disabled, List<Match> matches, int rowsMax) {
    /**
     * Copies the collections.
     *
     * @param catalog to register all series in
     * @param labels that are enabled
     * @param disabled domains that are not measured
     * @param matches rules for label values, each applied to the result of the previous one
     * @param rowsMax maximum number of label combinations per kind of event
     */
    public SeriesOptions {
        labels = Set.copyOf(labels);
        disabled = Set.copyOf(disabled);
        matches = List.copyOf(matches);
    }

    /**
     * All domains, no rules, a thousand rows.
     *
     * @param catalog to register all series in
     * @param labels that are enabled
     */
    public SeriesOptions(Catalog catalog, Set<Label> labels) {
        this(catalog, labels, Set.of(), List.of(), 1000);
    }

    /**
     * Whether a domain is measured.
     *
     * @param domain for example {@code http.server}
     * @return false if it is disabled
     */
    public boolean isEnabled(String domain) {
        return !disabled.contains(domain);
    }
}
