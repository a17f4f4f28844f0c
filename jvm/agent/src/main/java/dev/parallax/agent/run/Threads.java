package dev.parallax.agent.run;

import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/**
 * The agent's threads, all of them daemons. What one of them throws is a line of ours: an application's own handler of such
 * things may end it, as many do when there is no memory, which the agent meets when the application does.
 */
public final class Threads {
    /** Who wants memory that is not there makes the JVM stop everybody and look for it, so not too soon again. */
    public static final long REST_NS = 1_000_000_000;

    /** Threads that are made by these, whoever makes them, are of this group as well. A virtual thread is of none. */
    private static final ThreadGroup OWN = new ThreadGroup(top(), "parallax") {
        @Override
        public void uncaughtException(Thread thread, Throwable thrown) {
            Say.once(ended(thread.getName()), thrown);
        }
    };

    static {
        // Not when there is no memory, which a class, and a text that stands in the code, takes at its first use.
        Say.load();
        ended("");
    }

    private static String ended(String name) {
        return name.concat(" has ended");
    }

    private Threads() {}

    /** What a thread does again and again. */
    @FunctionalInterface
    public interface Work {
        /**
         * Does it.
         *
         * @throws Exception whatever it is, it is done again
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
     * Starts one.
     *
     * @param what it does
     * @param name of it
     * @return the thread
     */
    public static Thread start(Runnable what, String name) {
        Thread thread = new Thread(OWN, what, name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    /** For a virtual thread: makes the one that calls it one of ours. */
    public static void join() {
        Thread.currentThread().setUncaughtExceptionHandler(OWN);
    }

    /**
     * Does something again and again, be there memory for it or not, until it is over or the thread is interrupted or stopped.
     * After what it throws there is a rest, which ends early when all is over and the thread is unparked.
     *
     * @param failed what is said when it throws, once for each kind of what is thrown
     * @param isOver whether it is
     * @param work what to do
     */
    public static void again(String failed, BooleanSupplier isOver, Work work) {
        while (!isOver.getAsBoolean()) {
            try {
                work.run();
            } catch (InterruptedException | ThreadDeath end) {
                return;
            } catch (Throwable e) {
                Say.once(failed, e);
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
     * Does something in a thread of ours and waits for it, so that all threads that come of it are ours.
     *
     * @param <T> of what comes of it
     * @param what to do
     * @param name of the thread
     * @return what came of it
     * @throws Exception as it does
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
