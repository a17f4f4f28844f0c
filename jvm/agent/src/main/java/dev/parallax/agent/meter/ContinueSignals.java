package dev.parallax.agent.meter;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.concurrent.ConcurrentLinkedDeque;

/**
 * Notices SIGCONT, the only sign that a process had been stopped by a signal. An existing handler is still called.
 * Without the module {@code jdk.unsupported} nothing is noticed.
 */
final class ContinueSignals {
    private static final int MOST = 1_000;

    private final ConcurrentLinkedDeque<Long> heardNs = new ConcurrentLinkedDeque<>();

    private volatile Object previous;
    private Method handle;

    private ContinueSignals() {}

    /** Notices nothing. */
    static ContinueSignals deaf() {
        return new ContinueSignals();
    }

    static ContinueSignals listen() {
        ContinueSignals continues = new ContinueSignals();
        try {
            continues.install();
        } catch (ReflectiveOperationException | RuntimeException | LinkageError absent) {
            // Stops remain unexplained then.
        }
        return continues;
    }

    /** Restores the previous handler. */
    void end() {
        try {
            if (previous != null) {
                Class<?> signal = Class.forName("sun.misc.Signal");
                signal.getMethod("handle", signal, Class.forName("sun.misc.SignalHandler"))
                        .invoke(null, signal.getConstructor(String.class).newInstance("CONT"), previous);
            }
        } catch (ReflectiveOperationException | RuntimeException absent) {
            // The handler stays, and nobody asks it.
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
            // This stop remains unexplained: the thread is the JVM's, and an exception would reach the application's
            // handler.
        }
        Object other = previous;
        // The JDK's own two handlers mean "default" and "ignore"; the process has continued already.
        if (other != null && !other.getClass().getName().startsWith("jdk.internal.")
                && !other.getClass().getName().startsWith("sun.misc.")) {
            handle.invoke(other, signal);
        }
    }

    /** Whether SIGCONT was noticed in that period. */
    boolean heard(long fromNs, long toNs) {
        for (Long ns : heardNs) {
            if (ns - fromNs >= 0 && toNs - ns >= 0) {
                return true;
            }
        }
        return false;
    }
}
