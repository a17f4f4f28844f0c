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
 * Makes {@code Dispatch} and {@code Relay} visible to all class loaders. Must run before any class that refers to them
 * is loaded, so this class does not.
 */
public final class BootstrapClasses {
    /** In this order: the second refers to the first. */
    private static final List<String> NAMES = List.of("dev.parallax.agent.Relay", "dev.parallax.agent.Dispatch");

    private BootstrapClasses() {}

    /**
     * Defines both classes in the bootstrap loader through an internal API, which leaves the loader's class path
     * unchanged; with a longer one the JVM prints a warning about class data sharing. If that API is not available, the
     * class path is extended.
     *
     * @param agent the agent's loader
     * @param instrumentation from the JVM
     * @throws IOException if the agent's jar cannot be read
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
        Module own = BootstrapClasses.class.getModule();
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
