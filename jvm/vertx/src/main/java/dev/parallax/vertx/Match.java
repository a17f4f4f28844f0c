package dev.parallax.vertx;

import java.util.regex.Pattern;

/**
 * A rule for the values of a label, as vertx-micrometer-metrics has it.
 *
 * @param domain the series that it is of, as {@code http.server}; null for all
 * @param label whose values
 * @param pattern of the whole value
 * @param alias what a value that matches is replaced by; null for a rule that leaves only series whose value matches
 */
public record Match(String domain, Label label, Pattern pattern, String alias) {
    /**
     * A value, and what is shown in its place.
     *
     * @param domain the series that it is of; null for all
     * @param label whose value
     * @param value as it is
     * @param alias as it is shown; null: other values of that label, and none, are not shown
     * @return the rule
     */
    public static Match exactly(String domain, Label label, String value, String alias) {
        return new Match(domain, label, Pattern.compile(Pattern.quote(value)), alias);
    }

    /**
     * Values that look alike, and what is shown in their place.
     *
     * @param domain the series that it is of; null for all
     * @param label whose values
     * @param regex of the whole value
     * @param alias as they are shown
     * @return the rule
     */
    public static Match regex(String domain, Label label, String regex, String alias) {
        return new Match(domain, label, Pattern.compile(regex), alias);
    }

    boolean isOf(String domain) {
        return this.domain == null || this.domain.equals(domain);
    }

    boolean fits(String value) {
        return value != null && pattern.matcher(value).matches();
    }
}
