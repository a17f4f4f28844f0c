package dev.parallax.agent.instrument;

import dev.parallax.agent.AgentLoader;
import dev.parallax.agent.Relay;
import dev.parallax.agent.report.Reader;
import dev.parallax.agent.report.Source;
import dev.parallax.agent.run.Log;
import java.lang.ref.WeakReference;
import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * Finds the hook for an instrumented class. A hook lives as long as the class loader it was created for: it is attached
 * to a class of that loader and held by a weak reference here, so undeploying an application frees its hooks.
 */
public final class Hooks extends Relay implements Source {
    private static final Point[] POINTS = Point.values();

    private final AgentLoader agent;
    private final boolean[] hasFailed = new boolean[POINTS.length];
    private final List<WeakReference<Hook>> known = new CopyOnWriteArrayList<>();

    /** By the library's anchor class, which exists once per loader that has the library. */
    private final ClassValue<Hook> byAnchor = new ClassValue<>() {
        @Override
        protected Hook computeValue(Class<?> anchor) {
            return make(anchor);
        }
    };

    private final ClassValue<Hook> byWoven = new ClassValue<>() {
        @Override
        protected Hook computeValue(Class<?> woven) {
            return byAnchor.get(anchor(woven));
        }
    };

    Hooks(AgentLoader agent) {
        this.agent = agent;
    }

    @Override
    public Object entered(int point, Class<?> woven, Object self, Object argument) {
        if (hasFailed[point]) {
            return null;
        }
        try {
            return byWoven.get(woven).entered(POINTS[point], self, argument);
        } catch (Exception e) {
            failed(point, e);
            return null;
        }
    }

    @Override
    public Object left(int point, Class<?> woven, Object begun, Object returned, Throwable thrown) {
        try {
            return byWoven.get(woven).left(POINTS[point], begun, returned, thrown);
        } catch (Exception e) {
            failed(point, e);
            return null;
        }
    }

    /** The place is disabled after a failure, except for lack of memory or stack, which may be available next time. */
    @Override
    public void failed(int point, Throwable thrown) {
        String name = POINTS[point].name();
        if (thrown instanceof VirtualMachineError) {
            Log.once("some events of ".concat(name).concat(" are lost"), thrown);
        } else if (!hasFailed[point]) {
            Log.line(name.concat(" is no longer measured: ").concat(thrown.toString()));
            // Set after the line, since there may be no memory for the line. A race logs it twice at worst.
            hasFailed[point] = true;
        }
    }

    /** Reads all hooks that are still alive. */
    @Override
    public void read(Reader reader) {
        parts().forEach(hook -> hook.read(reader));
    }

    @Override
    public List<Source> parts() {
        known.removeIf(hook -> hook.refersTo(null));
        List<Source> alive = new ArrayList<>();
        for (WeakReference<Hook> reference : known) {
            Hook hook = reference.get();
            if (hook != null) {
                alive.add(hook);
            }
        }
        return alive;
    }

    private Hook make(Class<?> anchor) {
        Library library = Library.of(anchor.getName());
        try {
            Bridge bridge = new Bridge(agent, anchor.getClassLoader(), library);
            Hook hook = (Hook) Class.forName(library.hook, true, bridge).getDeclaredConstructor().newInstance();
            known.add(new WeakReference<>(hook));
            return hook;
        } catch (InvocationTargetException e) {
            if (e.getCause() instanceof Error error) {
                throw error;
            }
            throw new IllegalStateException(e);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    private static Class<?> anchor(Class<?> woven) {
        try {
            return Class.forName(Library.of(woven.getName()).anchor, false, woven.getClassLoader());
        } catch (ClassNotFoundException e) {
            throw new IllegalStateException(e);
        }
    }
}
