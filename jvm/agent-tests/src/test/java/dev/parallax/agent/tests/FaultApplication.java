package dev.parallax.agent.tests;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;

/** An application to which something happens, or that brings it on itself: what, is its argument. */
public final class FaultApplication {
    private static final int TIMES = 5;
    /** Until the meter looks, and until the flight recorder has reported of what was last. */
    private static final long BEFORE_MS = 500;

    private static final long AFTER_MS = 3_000;
    private static final long QUIET_MS = 1_500;

    private static volatile Object sink;

    private FaultApplication() {}

    public static void main(String[] arguments) throws Exception {
        Thread.sleep(QUIET_MS);
        long begunNs = System.nanoTime();
        System.out.println("ready_ns=" + begunNs);
        System.out.println("ready");
        switch (arguments[0]) {
            case "collect" -> collect();
            case "burn" -> burn(Long.parseLong(arguments[1]));
            case "wait" -> Thread.sleep(Long.parseLong(arguments[1]));
            case "fill" -> fill(Long.parseLong(arguments[1]));
            case "pin" -> pin();
            default -> throw new IllegalArgumentException(arguments[0]);
        }
        System.out.println("ms=" + (System.nanoTime() - begunNs) / 1_000_000);
        System.out.println("over");
    }

    /** Full collections of a heap full of small objects, all of them while the meter runs. */
    private static void collect() throws InterruptedException {
        Thread.sleep(BEFORE_MS);
        List<Object[]> live = new ArrayList<>();
        for (int i = 0; i < 1_000_000; i++) {
            live.add(new Object[] {i, live.isEmpty() ? null : live.get(ThreadLocalRandom.current().nextInt(live.size()))});
        }
        sink = live;
        for (int n = 0; n < TIMES; n++) {
            System.gc();
        }
        Thread.sleep(AFTER_MS);
    }

    private static void burn(long ms) {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            Thread thread = new Thread(() -> {
                long endNs = System.nanoTime() + ms * 1_000_000;
                long x = 1;
                while (System.nanoTime() - endNs < 0) {
                    x = x * 31 + 7;
                }
                sink = x;
            });
            thread.start();
            threads.add(thread);
        }
        threads.forEach(FaultApplication::join);
    }

    /** More than a collector keeps up with in a small heap, half of which stays alive, from several threads. */
    private static void fill(long ms) throws InterruptedException {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            Thread thread = new Thread(() -> {
                byte[][] live = new byte[300][];
                long endNs = System.nanoTime() + ms * 1_000_000;
                for (int n = 0; System.nanoTime() - endNs < 0; n++) {
                    live[n % live.length] = new byte[32 << 10];
                }
                sink = live;
            });
            thread.start();
            threads.add(thread);
        }
        threads.forEach(FaultApplication::join);
        Thread.sleep(AFTER_MS);
    }

    /** A class initializer has a frame of the JVM's own below it, which keeps a virtual thread on its carrier. */
    private static void pin() throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (Runnable one : List.<Runnable>of(() -> First.touch(), () -> Second.touch())) {
            threads.add((Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, one));
        }
        threads.forEach(FaultApplication::join);
        // The flight recorder reports within two seconds; events of an application's last two seconds are lost.
        Thread.sleep(2_500);
    }

    private static void join(Thread thread) {
        try {
            thread.join();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void sleep() {
        try {
            Thread.sleep(500);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static final class First {
        static {
            sleep();
        }

        static void touch() {}
    }

    private static final class Second {
        static {
            sleep();
        }

        static void touch() {}
    }
}
