package dev.parallax.agent.instrument;

import dev.parallax.agent.AgentLoader;
import java.io.IOException;
import java.lang.instrument.Instrumentation;
import java.lang.reflect.Method;
import java.security.ProtectionDomain;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.jar.JarFile;

/**
 * Puts {@code Dispatch} and {@code Relay} where all class loaders find them. To be opened before any class that names them
 * is loaded, so this one does not.
 */
public final class Door {
    /** In this order: the one names the other. */
    private static final List<String> NAMES = List.of("dev.parallax.agent.Relay", "dev.parallax.agent.Dispatch");

    private Door() {}

    /**
     * Defines both in the bootstrap loader, by the JVM's own means: that leaves the loader's class path as it is. A longer
     * one makes the JVM say on standard output that it shares fewer classes. Where those means are gone, a longer one it
     * is.
     *
     * @param agent the agent's loader
     * @param instrumentation the JVM's
     * @throws IOException when the agent's jar cannot be read
     */
    public static void open(AgentLoader agent, Instrumentation instrumentation) throws IOException {
        try (JarFile jar = new JarFile(agent.file())) {
            define(jar, instrumentation);
        } catch (ReflectiveOperationException | RuntimeException | LinkageError e) {
            instrumentation.appendToBootstrapClassLoaderSearch(new JarFile(agent.file()));
        }
    }

    private static void define(JarFile jar, Instrumentation instrumentation)
            throws IOException, ReflectiveOperationException {
        Module own = Door.class.getModule();
        instrumentation.redefineModule(
                Object.class.getModule(), Set.of(), Map.of("jdk.internal.misc", Set.of(own)), Map.of(), Set.of(), Map.of());
        Class<?> type = Class.forName("jdk.internal.misc.Unsafe");
        Object unsafe = type.getMethod("getUnsafe").invoke(null);
        Method define = type.getMethod(
                "defineClass",
                String.class, byte[].class, int.class, int.class, ClassLoader.class, ProtectionDomain.class);
        for (String name : NAMES) {
            byte[] code = jar.getInputStream(jar.getEntry(name.replace('.', '/') + ".class")).readAllBytes();
            define.invoke(unsafe, name, code, 0, code.length, null, null);
        }
    }
}
