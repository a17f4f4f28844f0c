package dev.parallax.agent.tests;

import java.lang.reflect.Field;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.function.BooleanSupplier;

/**
 * An application that exits immediately. With {@code asks}, and a URL, a shutdown hook of its own sends some requests
 * to its server. With {@code hangs} the agent's record can never be written, as on a file system that hangs, and with
 * {@code hangs fills} its standard error is also filled until it accepts no more. With {@code interrupted} its record
 * cannot be written until the agent tries, and the thread that exits is interrupted.
 */
public final class HookApplication {
    static final int TIMES = 3;

    private HookApplication() {}

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("asks")) {
            HttpClient client = HttpClient.newHttpClient();
            HttpRequest request = HttpRequest.newBuilder(URI.create(arguments[1])).build();
            Runtime.getRuntime().addShutdownHook(new Thread(() -> {
                try {
                    for (int n = 0; n < TIMES; n++) {
                        System.out.println(client.send(request, BodyHandlers.ofString()).body());
                    }
                } catch (Exception e) {
                    e.printStackTrace();
                }
            }));
        } else if (arguments[0].equals("hangs")) {
            hold(record(), () -> false);
            if (arguments.length > 1) {
                inBackground(() -> {
                    while (true) {
                        System.err.println("-".repeat(1_000));
                    }
                });
            }
        } else {
            hold(record(), HookApplication::isAtItsEnd);
            Thread.currentThread().interrupt();
            System.exit(0);
        }
    }

    private static Object record() throws Exception {
        ClassLoader loader = (ClassLoader) value(Class.forName("dev.parallax.agent.Agent"), null, "loader");
        Object running = value(Class.forName("dev.parallax.agent.run.Start", true, loader), null, "running");
        return ((Optional<?>) value(running.getClass(), running, "recording")).orElseThrow();
    }

    private static Object value(Class<?> type, Object of, String name) throws Exception {
        Field field = type.getDeclaredField(name);
        field.setAccessible(true);
        return field.get(of);
    }

    /** The agent's thread for it waits for the record. */
    private static boolean isAtItsEnd() {
        return Thread.getAllStackTraces().keySet().stream()
                .anyMatch(one -> one.getName().equals("parallax-end") && one.getState() == Thread.State.BLOCKED);
    }

    private static void hold(Object record, BooleanSupplier isEnough) throws InterruptedException {
        CountDownLatch held = new CountDownLatch(1);
        inBackground(() -> {
            synchronized (record) {
                held.countDown();
                while (!isEnough.getAsBoolean()) {
                    sleep();
                }
            }
        });
        held.await();
    }

    private static void inBackground(Runnable what) {
        Thread thread = new Thread(what);
        thread.setDaemon(true);
        thread.start();
    }

    private static void sleep() {
        try {
            Thread.sleep(10);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
