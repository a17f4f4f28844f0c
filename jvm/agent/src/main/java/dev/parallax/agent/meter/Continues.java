package dev.parallax.agent.meter;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.concurrent.ConcurrentLinkedDeque;

/**
 * Hears SIGCONT, which is how a process that was stopped by a signal goes on: nothing else tells that it was. Whoever had a
 * handler for it goes on being called. Where the JDK has no module {@code jdk.unsupported} nothing is heard.
 */
final class Continues {
    private static final int MOST = 1_000;

    private final ConcurrentLinkedDeque<Long> heardNs = new ConcurrentLinkedDeque<>();

    private volatile Object previous;
    private Method handle;

    private Continues() {}

    /** Hears nothing. */
    static Continues deaf() {
        return new Continues();
    }

    static Continues listen() {
        Continues continues = new Continues();
        try {
            continues.install();
        } catch (ReflectiveOperationException | RuntimeException | LinkageError absent) {
            // Then a stop stays unexplained.
        }
        return continues;
    }

    /** Hears no more: who had a handler has it again. */
    void end() {
        try {
            if (previous != null) {
                Class<?> signal = Class.forName("sun.misc.Signal");
                signal.getMethod("handle", signal, Class.forName("sun.misc.SignalHandler"))
                        .invoke(null, signal.getConstructor(String.class).newInstance("CONT"), previous);
            }
        } catch (ReflectiveOperationException | RuntimeException absent) {
            // Then it hears, and nobody asks.
        }
    }

    private void install() throws ReflectiveOperationException {
        Class<?> signal = Class.forName("sun.misc.Signal");
        Class<?> handler = Class.forName("sun.misc.SignalHandler");
        handle = handler.getMethod("handle", signal);
        InvocationHandler hears = (proxy, method, arguments) -> {
            if (!method.getName().equals("handle")) {
                return method.getName().equals("hashCode")
                        ? (Object) System.identityHashCode(proxy)
                        : method.getName().equals("equals") ? proxy == arguments[0] : "parallax";
            }
            hear(arguments[0]);
            return null;
        };
        Object ours = Proxy.newProxyInstance(handler.getClassLoader(), new Class<?>[] {handler}, hears);
        previous = signal.getMethod("handle", signal, handler)
                .invoke(null, signal.getConstructor(String.class).newInstance("CONT"), ours);
    }

    private void hear(Object signal) throws ReflectiveOperationException {
        try {
            heardNs.add(System.nanoTime());
            if (heardNs.size() > MOST) {
                heardNs.poll();
            }
        } catch (OutOfMemoryError e) {
            // Then this stop stays unexplained: the thread is the JVM's, and what it throws the application's.
        }
        Object other = previous;
        // The two that the JDK itself has are for "do what is usual" and "do nothing": to go on has been done.
        if (other != null && !other.getClass().getName().startsWith("jdk.internal.")
                && !other.getClass().getName().startsWith("sun.misc.")) {
            handle.invoke(other, signal);
        }
    }

    /** Whether one was heard in that time. */
    boolean heard(long fromNs, long toNs) {
        for (Long ns : heardNs) {
            if (ns - fromNs >= 0 && toNs - ns >= 0) {
                return true;
            }
        }
        return false;
    }
}
