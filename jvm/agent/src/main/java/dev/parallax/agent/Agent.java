package dev.parallax.agent;

import java.io.File;
import java.lang.instrument.Instrumentation;
import java.lang.reflect.InvocationTargetException;
import java.net.URISyntaxException;

/**
 * Where a JVM begins the agent: at its own start, when it is attached, or as a program that attaches it, prints
 * help or is another JVM's idle companion.
 *
 * <p>Whatever goes wrong ends in one line on standard error; the application goes on.
 */
public final class Agent {
    private static final String START = "dev.parallax.agent.run.Start";

    /** One for all attachments. */
    private static AgentLoader loader;

    private Agent() {}

    /**
     * At the start of the JVM.
     *
     * @param options what stands behind the jar's name
     * @param instrumentation the JVM's
     */
    public static void premain(String options, Instrumentation instrumentation) {
        begin(options, instrumentation);
    }

    /**
     * When attached to a JVM that runs. Attached once more, the options are commands to the agent that is there.
     *
     * @param options as at the start
     * @param instrumentation the JVM's
     */
    public static void agentmain(String options, Instrumentation instrumentation) {
        begin(options, instrumentation);
    }

    /**
     * As a program.
     *
     * @param arguments {@code attach} with a process id and options, {@code help}, or what the agent itself passes to its
     *     companion
     */
    public static void main(String[] arguments) {
        call("program", new Class<?>[] {String[].class}, new Object[] {arguments});
    }

    private static void begin(String options, Instrumentation instrumentation) {
        call("agent", new Class<?>[] {String.class, Instrumentation.class}, options, instrumentation);
    }

    private static synchronized void call(String name, Class<?>[] types, Object... arguments) {
        try {
            if (loader == null) {
                loader = new AgentLoader(file());
            }
            Class.forName(START, true, loader).getMethod(name, types).invoke(null, arguments);
        } catch (InvocationTargetException e) {
            say(e.getCause());
        } catch (Throwable e) {
            say(e);
        }
    }

    private static File file() throws URISyntaxException {
        return new File(Agent.class.getProtectionDomain().getCodeSource().getLocation().toURI());
    }

    private static void say(Throwable thrown) {
        System.err.println("parallax-agent: off: " + String.valueOf(thrown).replace('\n', ' '));
    }
}
