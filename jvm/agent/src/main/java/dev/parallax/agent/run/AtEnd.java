package dev.parallax.agent.run;

import java.lang.instrument.Instrumentation;
import java.lang.reflect.InvocationTargetException;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * The last that the agent does, once the application's own shutdown hooks are over: what they still do is measured, too.
 * Whatever it comes to, a JVM that wants to end does not wait for it for long.
 */
final class AtEnd {
    /** So long a write may take: to a file system that hangs it never ends. */
    private static final long LONGEST_S = 3;

    /** And so long the line that says so: standard error may hang as well, or be a pipe that is full and that nobody reads. */
    private static final long LINE_MS = 100;

    /** Of those in which the JDK keeps what it does itself at the end, one after the other; it uses the first three. */
    private static final int LAST_SLOT = 9;

    private static boolean isRegistered;
    private static volatile Runnable what;

    private AtEnd() {}

    /** @throws IllegalStateException when the JVM is about to end */
    static synchronized void run(Runnable last, Instrumentation instrumentation) {
        if (!isRegistered) {
            try {
                register(instrumentation);
            } catch (ReflectiveOperationException | RuntimeException | LinkageError absent) {
                // Beside the application's then, not behind them. Throws by itself where it is too late for that as well.
                Runtime.getRuntime().addShutdownHook(new Thread(AtEnd::end, "parallax-end"));
            }
            isRegistered = true;
        }
        what = last;
    }

    private static void register(Instrumentation instrumentation) throws ReflectiveOperationException {
        instrumentation.redefineModule(
                Object.class.getModule(), Set.of(), Map.of("jdk.internal.access", Set.of(AtEnd.class.getModule())),
                Map.of(), Set.of(), Map.of());
        Object access = Class.forName("jdk.internal.access.SharedSecrets").getMethod("getJavaLangAccess").invoke(null);
        try {
            Class.forName("jdk.internal.access.JavaLangAccess")
                    .getMethod("registerShutdownHook", int.class, boolean.class, Runnable.class)
                    .invoke(access, LAST_SLOT, false, (Runnable) AtEnd::end);
        } catch (InvocationTargetException e) {
            // An InternalError where the place is taken.
            throw new IllegalStateException(e.getCause());
        }
    }

    /** What was to be done is not done. */
    static void forget() {
        what = null;
    }

    private static void end() {
        Runnable last = what;
        if (last == null) {
            return;
        }
        try {
            if (!isDone(last, "parallax-end", TimeUnit.SECONDS.toNanos(LONGEST_S))) {
                String line = "gave up writing at exit: it takes longer than " + LONGEST_S + " s";
                isDone(() -> Say.line(line), "parallax-end-line", TimeUnit.MILLISECONDS.toNanos(LINE_MS));
            }
        } catch (Throwable e) {
            // There is no thread to be had, nor one that could say so without danger: the record is one that was cut off.
        }
    }

    /** Whether it is, by a thread of ours, in that time. Who interrupts the thread that ends the JVM ends it no sooner. */
    private static boolean isDone(Runnable what, String name, long longestNs) {
        long endNs = System.nanoTime() + longestNs;
        Thread thread = Threads.start(what, name);
        boolean isInterrupted = false;
        for (long leftNs = longestNs; leftNs > 0 && thread.isAlive(); leftNs = endNs - System.nanoTime()) {
            try {
                TimeUnit.NANOSECONDS.timedJoin(thread, leftNs);
            } catch (InterruptedException e) {
                isInterrupted = true;
            }
        }
        if (isInterrupted) {
            Thread.currentThread().interrupt();
        }
        return !thread.isAlive();
    }
}
