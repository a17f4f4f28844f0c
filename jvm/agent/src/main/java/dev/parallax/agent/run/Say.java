package dev.parallax.agent.run;

import java.io.PrintStream;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** Lines on standard error, each marked as the agent's. */
public final class Say {
    /** As it was at the start: what an application puts in its place later may call anything, us included. */
    private static final PrintStream ERR = System.err;

    /** What was said by {@link #once}, with the kind of what was thrown. */
    private static final Set<String> SAID = ConcurrentHashMap.newKeySet();

    private Say() {}

    /** Does nothing more. */
    static void load() {}

    /**
     * Prints one.
     *
     * @param text whatever it holds, it becomes one line
     */
    public static void line(String text) {
        // Not by `+`, which has to be linked first: for that there may be no memory, when that is what is to be said.
        ERR.println("parallax-agent: ".concat(text.replace('\n', ' ').replace('\r', ' ')));
    }

    /**
     * Prints what went wrong, the first time that it did by what is thrown of this class. A race says it twice at worst.
     * Never throws: who has no memory for a line has work to do all the same.
     *
     * @param what went wrong
     * @param thrown why
     */
    public static void once(String what, Throwable thrown) {
        try {
            String kind = what.concat(thrown.getClass().getName());
            if (!SAID.contains(kind)) {
                line(what.concat(": ").concat(thrown.toString()));
                SAID.add(kind);
            }
        } catch (Throwable e) {
            // There is no memory for it, and may be the next time.
        }
    }
}
