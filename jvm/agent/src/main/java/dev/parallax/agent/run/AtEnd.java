package dev.parallax.agent.run;

import java.lang.instrument.Instrumentation;
import java.lang.reflect.InvocationTargetException;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * The agent's last work, after the application's shutdown hooks, so that what they do is measured too. A JVM that exits
 * never waits long for it.
 */
final class AtEnd {
    /** Maximum time for writing, in seconds; a file system that hangs would block for ever. */
    private static final long LONGEST_S = 3;

    /** Maximum time for logging a timeout; standard error may hang too, or be a full pipe that nobody reads. */
    private static final long LINE_MS = 100;

    /** Slot of the JDK's own shutdown hooks, which run one after another; the JDK uses the first three. */
    private static final int LAST_SLOT = 9;

    private static boolean isRegistered;
    private static volatile Runnable what;

    private AtEnd() {}

    /** @throws IllegalStateException if the JVM is already exiting */
    static synchronized void run(Runnable last, Instrumentation instrumentation) {
        if (!isRegistered) {
            try {
                register(instrumentation);
            } catch (ReflectiveOperationException | RuntimeException | LinkageError absent) {
                // Runs concurrently with the application's hooks then. Throws the same exception if it is too late.
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
            // An InternalError if the slot is taken.
            throw new IllegalStateException(e.getCause());
        }
    }

    /** Cancels the work. */
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
                isDone(() -> Log.line(line), "parallax-end-line", TimeUnit.MILLISECONDS.toNanos(LINE_MS));
            }
        } catch (Throwable e) {
            // No thread can be created, and none could report it safely: the record reads as interrupted.
        }
    }

    /**
     * Returns whether the work is done within that time, on a thread of the agent. Interrupting the exiting thread does
     * not shorten the wait.
     */
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
