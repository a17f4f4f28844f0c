package dev.parallax.agent.instrument;

import dev.parallax.agent.AgentLoader;
import dev.parallax.agent.Dispatch;
import dev.parallax.agent.run.Log;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.lang.instrument.UnmodifiableClassException;
import java.security.ProtectionDomain;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import net.bytebuddy.ByteBuddy;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.dynamic.DynamicType;
import net.bytebuddy.dynamic.scaffold.TypeValidation;
import net.bytebuddy.pool.TypePool;

/**
 * Instruments the few classes named by {@link Point} when they are loaded, or immediately if they already are. Requires
 * {@link BootstrapClasses#open}. Any other class costs one lookup of its name, and the byte code library is not loaded until a
 * class has to be changed. A class that cannot be changed, or whose version is too old, is left unchanged and logged in
 * one line.
 */
public final class Weaving implements ClassFileTransformer {
    /** By class name with slashes. */
    private final Map<String, List<Point>> points = new HashMap<>();

    /** By the loader that has the library. */
    private final Map<ClassLoader, Map<Library, Boolean>> refused = Collections.synchronizedMap(new WeakHashMap<>());

    private final AgentLoader agent;
    private final Hooks hooks;

    /**
     * Does not change anything yet.
     *
     * @param agent the agent's loader
     * @param libraries to instrument
     */
    public Weaving(AgentLoader agent, Set<Library> libraries) {
        this.agent = agent;
        this.hooks = new Hooks(agent);
        for (Point point : Point.values()) {
            if (libraries.contains(point.library())) {
                points.merge(point.className.replace('.', '/'), List.of(point), (some, more) -> Stream.concat(
                                some.stream(), more.stream())
                        .toList());
            }
        }
    }

    /**
     * The hooks called by instrumented code.
     *
     * @return all hooks
     */
    public Hooks hooks() {
        return hooks;
    }

    /**
     * Starts instrumenting.
     *
     * @param instrumentation from the JVM
     */
    public void begin(Instrumentation instrumentation) {
        if (!points.isEmpty()) {
            instrumentation.addTransformer(this, instrumentation.isRetransformClassesSupported());
            retransform(instrumentation);
            // Last: if the step above fails, no hook has started anything.
            Dispatch.connect(hooks);
        }
    }

    /**
     * Stops instrumenting and restores the original code.
     *
     * @param instrumentation from the JVM
     */
    public void end(Instrumentation instrumentation) {
        if (!points.isEmpty()) {
            Dispatch.connect(null);
            instrumentation.removeTransformer(this);
            retransform(instrumentation);
        }
    }

    /** Retransforms classes that are loaded already with the current set of transformers. */
    private void retransform(Instrumentation instrumentation) {
        if (!instrumentation.isRetransformClassesSupported()) {
            return;
        }
        for (Class<?> loaded : instrumentation.getAllLoadedClasses()) {
            if (points.containsKey(loaded.getName().replace('.', '/'))) {
                try {
                    instrumentation.retransformClasses(loaded);
                } catch (UnmodifiableClassException | RuntimeException | LinkageError e) {
                    Log.line(loaded.getName() + " is not instrumented: " + e);
                }
            }
        }
    }

    @Override
    public byte[] transform(
            ClassLoader loader, String name, Class<?> redefined, ProtectionDomain domain, byte[] code) {
        List<Point> here = name == null || loader == null ? null : points.get(name);
        if (here == null) {
            return null;
        }
        try {
            if (isRefused(here.get(0).library(), loader)) {
                return null;
            }
            return weave(loader, name.replace('/', '.'), code, here);
        } catch (Throwable e) {
            Log.line(name.replace('/', '.') + " is not instrumented: " + e);
            return null;
        }
    }

    /** Asks without a lock, because a loader may load classes to answer. */
    private boolean isRefused(Library library, ClassLoader loader) {
        Map<Library, Boolean> known = refused.computeIfAbsent(loader, key -> new ConcurrentHashMap<>());
        Boolean before = known.get(library);
        if (before != null) {
            return before;
        }
        Optional<String> refusal = library.refusal(loader);
        if (known.putIfAbsent(library, refusal.isPresent()) == null) {
            refusal.ifPresent(Log::line);
        }
        return refusal.isPresent();
    }

    private byte[] weave(ClassLoader loader, String name, byte[] code, List<Point> here) {
        ClassFileLocator found = new ClassFileLocator.Compound(
                ClassFileLocator.Simple.of(name, code), ClassFileLocator.ForClassLoader.of(loader));
        ClassFileLocator ours = ClassFileLocator.ForClassLoader.of(agent);
        TypeDescription type = TypePool.Default.of(found).describe(name).resolve();
        DynamicType.Builder<?> builder =
                new ByteBuddy().with(TypeValidation.DISABLED).redefine(type, found);
        for (Point point : here) {
            boolean isThere = type.getDeclaredMethods().stream()
                    .anyMatch(method -> point.isOf(method.getName(), method.getParameters().size()));
            if (!isThere) {
                Log.line(name + " has no " + point.method + " as expected: not instrumented");
                continue;
            }
            builder = builder.visit(point.shape.advice(point.ordinal(), ours).on(
                    method -> point.isOf(method.getName(), method.getParameters().size())));
        }
        return builder.make().getBytes();
    }
}
