package dev.parallax.agent.run;

import dev.parallax.agent.AgentLoader;
import dev.parallax.agent.instrument.Door;
import dev.parallax.agent.meter.Hiccups;
import java.lang.instrument.Instrumentation;

/** Called by {@link dev.parallax.agent.Agent} with what the JVM or a shell gave it. */
public final class Start {
    private static Running running;

    private Start() {}

    /**
     * Begins the agent, or gives a command to the one that is there.
     *
     * @param text the options
     * @param instrumentation the JVM's
     * @throws Exception when the agent cannot begin; nothing of it runs then
     */
    public static synchronized void agent(String text, Instrumentation instrumentation) throws Exception {
        if ("help".equals(text)) {
            System.err.print(Options.help());
            return;
        }
        Options options;
        try {
            options = Options.parse(text);
        } catch (Options.Bad bad) {
            Say.line((running == null ? "off: " : "not done: ") + bad.getMessage());
            return;
        }
        if (running != null) {
            running.command(options);
            return;
        }
        AgentLoader loader = (AgentLoader) Start.class.getClassLoader();
        Door.open(loader, instrumentation);
        running = Running.begin(options, loader, instrumentation);
    }

    /**
     * As a program.
     *
     * @param arguments of the command line
     * @throws Exception when the companion ends before its time
     */
    public static void program(String[] arguments) throws Exception {
        if (arguments.length == 2 && arguments[0].equals("companion")) {
            Hiccups.companion(Long.parseLong(arguments[1]));
        } else {
            System.out.print(Options.help());
        }
    }
}
