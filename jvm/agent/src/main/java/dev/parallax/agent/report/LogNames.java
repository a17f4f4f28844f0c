package dev.parallax.agent.report;

import dev.parallax.agent.run.Log;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/**
 * Decides which labels get a log of their own in a record. A record has at most 256 logs, and a log once created stays,
 * so an application with endlessly new pool or server names could use them all up. Each series therefore has some
 * reserved logs; beyond these and the shared ones, labels are recorded as {@link Series#OTHER}.
 */
final class LogNames {
    /** Reserved per series, in addition to the one for all other labels. */
    static final int OWN = 5;

    /** Shared by all series: with 21 names and 26 logs of the JVM, the total is below 256. */
    static final int SHARED = 100;

    /** Labels by name of the series; some series share a name and so the logs. */
    private final Map<String, Set<String>> placed = new HashMap<>();

    private boolean hasWarned;

    /**
     * Returns the label itself or {@link Series#OTHER}; always the same for one label, so its records stay in one log.
     */
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
        if (!hasWarned) {
            hasWarned = true;
            Log.line("the record has no room for more names: further ones are recorded as " + Series.OTHER);
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
