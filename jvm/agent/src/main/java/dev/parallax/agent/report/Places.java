package dev.parallax.agent.report;

import dev.parallax.agent.run.Say;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/**
 * Who has a log of its own in a record. A record has 256 logs at most, and one that is there stays: an application that
 * names pools or servers without an end would leave no place for what comes later. So every series has some places that no
 * other can take, and beyond those of all series together its labels are told as {@link Series#OTHER}.
 */
final class Places {
    /** Of each series, beside the one of all others. */
    static final int OWN = 5;

    /** Of all series together, beyond their own: with 21 names, and 26 logs of the JVM, fewer than 256. */
    static final int SHARED = 100;

    /** Labels by the series' names: some series have the same name, and so the same logs. */
    private final Map<String, Set<String>> placed = new HashMap<>();

    private boolean hasSaid;

    /** Itself or {@link Series#OTHER}, and of a label always the same: what it recorded stays where it is. */
    String label(Series series, String label) {
        if (series.isOfTheJvm() || label.equals(Series.OTHER)) {
            return label;
        }
        Set<String> labels = placed.computeIfAbsent(series.title(), title -> new HashSet<>());
        if (labels.contains(label)) {
            return label;
        }
        if (labels.size() < OWN || shared() < SHARED) {
            labels.add(label);
            return label;
        }
        if (!hasSaid) {
            hasSaid = true;
            Say.line("the record has no room for more names: further ones are recorded as " + Series.OTHER");
        }
        return Series.OTHER;
    }

    private int shared() {
        int taken = 0;
        for (Set<String> labels : placed.values()) {
            taken += Math.max(0, labels.size() - OWN);
        }
        return taken;
    }
}
