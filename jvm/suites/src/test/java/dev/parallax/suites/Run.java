package dev.parallax.suites;

import java.util.Locale;

/** Which of the two runs of these classes this is. */
public enum Run {
    /** Plain pools, and those that a module measures. */
    MODULES,
    /** Plain pools again, in a JVM that has the agent. */
    AGENT;

    /**
     * The run that the build has selected.
     *
     * @return that of this JVM
     */
    public static Run now() {
        return valueOf(System.getProperty("suites.run").toUpperCase(Locale.ROOT));
    }
}
