package dev.parallax.agent.run;

import java.io.PrintStream;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** Log lines on standard error, each marked as the agent's. */
public final class Log {
    /** Standard error at the start: a stream that the application installs later may call anything, including us. */
    private static final PrintStream ERR = System.err;

    /** Texts logged by {@link #once}, with the type of the exception. */
    private static final Set<String> LOGGED = ConcurrentHashMap.newKeySet();

    private Log() {}

    /** Loads this class. */
    static void load() {}

    /**
     * Logs a line.
     *
     * @param text line breaks become spaces
     */
    public static void line(String text) {
        // Not with `+`, which needs linking at first use, and there may be no memory for that when this has to be
        // logged.
        ERR.println("parallax-agent: ".concat(text.replace('\n', ' ').replace('\r', ' ')));
    }

    /**
     * Logs a failure, once per text and type of exception (twice at worst, in a race). Never throws: a caller without
     * memory for a line must continue.
     *
     * @param what failed
     * @param thrown the cause
     */
    public static void once(String what, Throwable thrown) {
        try {
            String kind = what.concat(thrown.getClass().getName());
            if (!LOGGED.contains(kind)) {
                line(what.concat(": ").concat(thrown.toString()));
                LOGGED.add(kind);
            }
        } catch (Throwable e) {
            // There is no memory for the line now; there may be next time.
        }
    }
}
