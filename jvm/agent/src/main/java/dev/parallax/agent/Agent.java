package dev.parallax.agent;

import java.io.File;
import java.lang.instrument.Instrumentation;
import java.lang.reflect.InvocationTargetException;
import java.net.URISyntaxException;

/**
 * Entry points of the agent: at the start of a JVM, when attached to one, and as a program that attaches it, prints
 * help or is another JVM's idle companion.
 *
 * <p>Any failure ends in one line on standard error; the application continues.
 */
public final class Agent {
    private static final String START = "dev.parallax.agent.run.Start";

    /** Shared by all attachments. */
    private static AgentLoader loader;

    private Agent() {}

    /**
     * Called at the start of the JVM.
     *
     * @param options text after the jar's name
     * @param instrumentation from the JVM
     */
    public static void premain(String options, Instrumentation instrumentation) {
        begin(options, instrumentation);
    }

    /**
     * Called when attached to a running JVM. If the agent is running already, the options are commands to it.
     *
     * @param options as at the start
     * @param instrumentation from the JVM
     */
    public static void agentmain(String options, Instrumentation instrumentation) {
        begin(options, instrumentation);
    }

    /**
     * Called as a program.
     *
     * @param arguments {@code attach} with a process id and options, {@code help}, or what the agent passes to its
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
