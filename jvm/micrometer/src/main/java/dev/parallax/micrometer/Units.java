package dev.parallax.micrometer;

import java.util.Map;

/** Micrometer's units are words, OpenTelemetry's are UCUM symbols. A word without a symbol stays unchanged. */
final class Units {
    private static final Map<String, String> SYMBOLS = Map.ofEntries(
            Map.entry("seconds", "s"),
            Map.entry("milliseconds", "ms"),
            Map.entry("microseconds", "us"),
            Map.entry("nanoseconds", "ns"),
            Map.entry("minutes", "min"),
            Map.entry("hours", "h"),
            Map.entry("days", "d"),
            Map.entry("bytes", "By"),
            Map.entry("kilobytes", "kBy"),
            Map.entry("megabytes", "MBy"));

    private Units() {}

    static String symbol(String word) {
        return word == null ? "" : SYMBOLS.getOrDefault(word, word);
    }

    /** Null for no unit, and for the unit of what is counted, which the name contains. */
    static String word(String symbol) {
        if (symbol.isEmpty() || symbol.startsWith("{") || symbol.equals("1")) {
            return null;
        }
        for (Map.Entry<String, String> known : SYMBOLS.entrySet()) {
            if (known.getValue().equals(symbol)) {
                return known.getKey();
            }
        }
        return symbol;
    }
}
