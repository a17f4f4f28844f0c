package dev.parallax.agent.run;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.InvocationTargetException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** Loads the agent into another JVM of this host and user. */
final class Attach {
    /** In a JDK module that not every runtime has and that this class's loader does not see. */
    private static final String MACHINE = "com.sun.tools.attach.VirtualMachine";

    private static final String INSTEAD = "; start the application with -javaagent:parallax-agent.jar instead";

    /** As part of a signal mask, see proc(5). */
    private static final long QUIT = 1 << 3 - 1;

    private Attach() {}

    /**
     * Attaches and prints the result.
     *
     * @return whether the agent was loaded; errors in the options are printed by the other JVM
     */
    static boolean to(String pid, String options, File jar) {
        try {
            Options.parse(options);
            if (!listens(pid)) {
                Log.line("not attached to " + pid + ": no JVM with this process id accepts agents" + INSTEAD);
                return false;
            }
            load(Class.forName(MACHINE, true, ClassLoader.getSystemClassLoader()), pid, options, jar);
            Log.line("loaded into " + pid + "; its messages are on that process's standard error");
            return true;
        } catch (Options.Invalid invalid) {
            Log.line("not attached: " + invalid.getMessage());
        } catch (ClassNotFoundException e) {
            Log.line("not attached: this runtime has no module jdk.attach; run this with a JDK's java");
        } catch (InvocationTargetException e) {
            Log.line("not attached to " + pid + ": " + e.getCause().getMessage() + INSTEAD);
        } catch (ReflectiveOperationException e) {
            Log.line("not attached: " + e);
        }
        return false;
    }

    /**
     * Whether the process is a JVM that survives the attempt. The JDK sends SIGQUIT to attach; older JDKs do so without
     * checking who handles it, and a process that is not a JVM may exit.
     */
    private static boolean listens(String pid) {
        if (!pid.matches("[1-9][0-9]{0,9}")) {
            return false;
        }
        Path process = Path.of("/proc", pid);
        if (!Files.isDirectory(Path.of("/proc/self"))) {
            return true;
        }
        try (Stream<String> maps = Files.lines(process.resolve("maps"))) {
            List<String> status = Files.readAllLines(process.resolve("status"));
            return maps.anyMatch(line -> line.contains("/libjvm.so")) && status.stream().anyMatch(Attach::catchesQuit);
        } catch (IOException | UncheckedIOException e) {
            return false;
        }
    }

    private static boolean catchesQuit(String line) {
        String name = "SigCgt:";
        return line.startsWith(name)
                && (Long.parseUnsignedLong(line.substring(name.length()).trim(), 16) & QUIT) != 0;
    }

    private static void load(Class<?> type, String pid, String options, File jar) throws ReflectiveOperationException {
        Object machine = type.getMethod("attach", String.class).invoke(null, pid);
        try {
            type.getMethod("loadAgent", String.class, String.class).invoke(machine, jar.getAbsolutePath(), options);
        } finally {
            type.getMethod("detach").invoke(machine);
        }
    }
}
