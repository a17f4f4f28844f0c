package dev.parallax.agent.run;

import dev.parallax.agent.AgentLoader;
import dev.parallax.agent.instrument.BootstrapClasses;
import dev.parallax.agent.meter.Hiccups;
import java.io.File;
import java.lang.instrument.Instrumentation;
import java.util.List;

/** Called by {@link dev.parallax.agent.Agent} with what the JVM or a shell passed to it. */
public final class Start {
    private static final List<String> HELP = List.of("help", "--help", "-h");

    /** Exit status for an invalid command line. */
    private static final int WRONG = 2;

    private static Running running;
    private static boolean isDoorOpen;

    private Start() {}

    /**
     * Starts the agent, or passes a command to the running one.
     *
     * @param text the options
     * @param instrumentation from the JVM
     * @throws Exception if the agent cannot start; nothing of it runs then
     */
    public static synchronized void agent(String text, Instrumentation instrumentation) throws Exception {
        if ("help".equals(text)) {
            System.err.print(Options.help());
            return;
        }
        Options options;
        try {
            options = Options.parse(text);
        } catch (Options.Invalid invalid) {
            Log.line((running == null ? "off: " : "not done: ") + invalid.getMessage());
            return;
        }
        if (running != null) {
            Threads.call(
                    () -> {
                        running.command(options);
                        return null;
                    },
                    "parallax-command");
            return;
        }
        AgentLoader loader = (AgentLoader) Start.class.getClassLoader();
        if (!isDoorOpen) {
            BootstrapClasses.open(loader, instrumentation);
            isDoorOpen = true;
        }
        running = Threads.call(() -> Running.begin(options, loader, instrumentation), "parallax-start");
    }

    /**
     * Runs as a program.
     *
     * @param arguments of the command line
     * @throws Exception if the companion fails
     */
    public static void program(String[] arguments) throws Exception {
        if (arguments.length == 2 && arguments[0].equals("companion")) {
            Hiccups.companion(Long.parseLong(arguments[1]));
        } else if (arguments.length >= 1 && arguments[0].equals("attach")) {
            if (!attach(arguments)) {
                System.exit(1);
            }
        } else if (arguments.length == 0 || HELP.contains(arguments[0])) {
            System.out.print(Options.help());
        } else {
            Log.line("unknown command '" + arguments[0] + "'; commands are attach and help");
            System.exit(WRONG);
        }
    }

    private static boolean attach(String[] arguments) {
        if (arguments.length < 2 || arguments.length > 3) {
            Log.line("not attached: usage is attach PID [key=value,key=value], without spaces");
            return false;
        }
        File jar = ((AgentLoader) Start.class.getClassLoader()).file();
        return Attach.to(arguments[1], arguments.length == 3 ? arguments[2] : "", jar);
    }
}
