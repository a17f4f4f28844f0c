package dev.parallax.agent.tests;

import java.lang.reflect.Field;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;

/**
 * An application that ends at once: with {@code asks}, and a URL, a shutdown hook of its own asks its server some times; with
 * {@code hangs} the agent's record is kept from being written for ever, as a file system that hangs does.
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
        } else {
            hold(record());
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

    private static void hold(Object record) throws InterruptedException {
        CountDownLatch held = new CountDownLatch(1);
        Thread thread = new Thread(() -> {
            synchronized (record) {
                held.countDown();
                while (true) {
                    sleep();
                }
            }
        });
        thread.setDaemon(true);
        thread.start();
        held.await();
    }

    private static void sleep() {
        try {
            Thread.sleep(1_000);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
