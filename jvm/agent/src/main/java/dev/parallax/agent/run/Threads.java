package dev.parallax.agent.run;

import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/**
 * The agent's threads, all of them daemons. Their uncaught exceptions are logged by the agent: an application's default
 * handler may exit the JVM, as many do when memory runs out, which affects the agent at the same time.
 */
public final class Threads {
    /**
     * Pause after a failure: an allocation that fails makes the JVM stop all threads and collect, so retries must be
     * rare.
     */
    public static final long REST_NS = 1_000_000_000;

    /** Threads created by these, no matter which thread creates them, belong to this group too; virtual threads do not. */
    private static final ThreadGroup OWN = new ThreadGroup(top(), "parallax") {
        @Override
        public void uncaughtException(Thread thread, Throwable thrown) {
            Log.once(ended(thread.getName()), thrown);
        }
    };

    static {
        // Done now, since loading a class or a string constant at first use needs memory.
        Log.load();
        ended("");
    }

    private static String ended(String name) {
        return name.concat(" has ended");
    }

    private Threads() {}

    /** Repeated work. */
    @FunctionalInterface
    public interface Work {
        /**
         * Does the work once.
         *
         * @throws Exception is logged, and the work is repeated
         */
        void run() throws Exception;
    }

    private static ThreadGroup top() {
        ThreadGroup top = Thread.currentThread().getThreadGroup();
        while (top.getParent() != null) {
            top = top.getParent();
        }
        return top;
    }

    /**
     * Starts a thread.
     *
     * @param what to run
     * @param name of the thread
     * @return the thread
     */
    public static Thread start(Runnable what, String name) {
        Thread thread = new Thread(OWN, what, name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    /** Handles uncaught exceptions of the calling virtual thread like those of the agent's threads. */
    public static void join() {
        Thread.currentThread().setUncaughtExceptionHandler(OWN);
    }

    /**
     * Repeats work, even when memory runs out, until it is over or the thread is interrupted or stopped. After an
     * exception it rests for a second, or until everything is over and the thread is unparked.
     *
     * @param failed logged when the work throws, once per type of exception
     * @param isOver whether to stop
     * @param work to repeat
     */
    public static void repeat(String failed, BooleanSupplier isOver, Work work) {
        while (!isOver.getAsBoolean()) {
            try {
                work.run();
            } catch (InterruptedException | ThreadDeath end) {
                return;
            } catch (Throwable e) {
                Log.once(failed, e);
                rest(isOver);
            }
        }
    }

    private static void rest(BooleanSupplier isOver) {
        long endNs = System.nanoTime() + REST_NS;
        long leftNs = REST_NS;
        while (leftNs > 0 && !isOver.getAsBoolean() && !Thread.currentThread().isInterrupted()) {
            LockSupport.parkNanos(leftNs);
            leftNs = endNs - System.nanoTime();
        }
    }

    /**
     * Runs something on an agent thread and waits for it, so that all threads it creates belong to the agent.
     *
     * @param <T> type of the result
     * @param what to run
     * @param name of the thread
     * @return the result
     * @throws Exception from the task
     */
    static <T> T call(Callable<T> what, String name) throws Exception {
        FutureTask<T> task = new FutureTask<>(what);
        start(task, name);
        boolean isInterrupted = false;
        try {
            while (true) {
                try {
                    return task.get();
                } catch (InterruptedException e) {
                    isInterrupted = true;
                }
            }
        } catch (ExecutionException e) {
            if (e.getCause() instanceof Error error) {
                throw error;
            }
            throw (Exception) e.getCause();
        } finally {
            if (isInterrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
