package dev.parallax.agent.meter;

import java.util.Locale;
import java.util.Map;
import java.util.StringJoiner;
import java.util.TreeMap;

/**
 * A period in which a thread should have woken up and did not.
 *
 * @param isVirtual whether it is the virtual thread's
 * @param beginNs when it should have woken up, from {@link System#nanoTime()}
 * @param lengthNs how late it was, including the wait for memory after that
 * @param parts nanoseconds by cause; they sum to the length
 * @param detail from the flight recorder; may be empty
 */
public record Hiccup(boolean isVirtual, long beginNs, long lengthNs, Map<Cause, Long> parts, String detail) {
    /** Shorter parts would print as zero. */
    private static final long LEAST_NS = 50_000;

    /**
     * Text for people.
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
     * Figures for programs.
     *
     * @return nanoseconds by name of the cause, without zeros
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
