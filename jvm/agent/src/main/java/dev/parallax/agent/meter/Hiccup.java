package dev.parallax.agent.meter;

import java.util.Locale;
import java.util.Map;
import java.util.StringJoiner;
import java.util.TreeMap;

/**
 * A time in which a thread should have looked at the clock and did not.
 *
 * @param isVirtual whether it was the virtual thread's
 * @param beginNs when it should have looked, of {@link System#nanoTime()}
 * @param lengthNs how late it was, with what it then waited for memory
 * @param parts by cause; they sum to the length
 * @param detail what the flight recorder says of it; empty when nothing
 */
public record Hiccup(boolean isVirtual, long beginNs, long lengthNs, Map<Cause, Long> parts, String detail) {
    /** What rounds to nothing is not printed. */
    private static final long LEAST_NS = 50_000;

    /**
     * For people.
     *
     * @return one line
     */
    public String line() {
        StringJoiner causes = new StringJoiner(", ");
        parts.entrySet().stream()
                .filter(part -> part.getValue() >= LEAST_NS)
                .sorted((a, b) -> Long.compare(b.getValue(), a.getValue()))
                .forEach(part -> causes.add(part.getKey().title() + " " + ms(part.getValue())));
        return (isVirtual ? "virtual threads' hiccup of " : "hiccup of ") + ms(lengthNs) + ": " + causes
                + (detail.isEmpty() ? "" : " (" + detail + ")");
    }

    /**
     * For programs.
     *
     * @return the parts by the names of their causes, without those that are nothing
     */
    public Map<String, Long> causes() {
        Map<String, Long> causes = new TreeMap<>();
        parts.forEach((cause, ns) -> {
            if (ns > 0) {
                causes.put(cause.title(), ns);
            }
        });
        return causes;
    }

    private static String ms(long ns) {
        return String.format(Locale.ROOT, "%.1f ms", ns / 1e6);
    }
}
