package dev.parallax.agent.run;

import java.io.PrintStream;

/** Lines on standard error, each marked as the agent's. */
public final class Say {
    /** As it was at the start: what an application puts in its place later may call anything, us included. */
    private static final PrintStream ERR = System.err;

    private Say() {}

    /**
     * Prints one.
     *
     * @param text whatever it holds, it becomes one line
     */
    public static void line(String text) {
        ERR.println("parallax-agent: " + text.replace('\n', ' ').replace('\r', ' '));
    }
}
