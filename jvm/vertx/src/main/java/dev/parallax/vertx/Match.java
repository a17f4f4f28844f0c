package dev.parallax.vertx;

import java.util.regex.Pattern;

/**
 * A rule for label values, as in vertx-micrometer-metrics.
 *
 * @param domain of the series, for example {@code http.server}; null for all
 * @param label whose values are matched
 * @param pattern for the whole value
 * @param alias replaces a matching value; null for a rule that keeps only series with a matching value
 */
public record Match(String domain, Label label, Pattern pattern, String alias) {
    /**
     * A rule for one value.
     *
     * @param domain of the series; null for all
     * @param label whose value is matched
     * @param value to match
     * @param alias replaces the value; null hides series with another value or none
     * @return the rule
     */
    public static Match exactly(String domain, Label label, String value, String alias) {
        return new Match(domain, label, Pattern.compile(Pattern.quote(value)), alias);
    }

    /**
     * A rule for values that match a regular expression.
     *
     * @param domain of the series; null for all
     * @param label whose values are matched
     * @param regex for the whole value
     * @param alias replaces the values; null hides series with another value or none
     * @return the rule
     */
    public static Match regex(String domain, Label label, String regex, String alias) {
        return new Match(domain, label, Pattern.compile(regex), alias);
    }

    boolean appliesTo(String domain) {
        return this.domain == null || this.domain.equals(domain);
    }

    boolean matches(String value) {
        return value != null && pattern.matcher(value).matches();
    }
}
