package dev.parallax.agent.tests;

import java.io.BufferedReader;
import java.io.InputStreamReader;

/**
 * An application that survives without memory: it catches the error each time, and frees what it has. An uncaught error
 * ends it immediately, as in many services.
 */
public final class MemoryApplication {
    static final int STATUS = 3;
    private static final int TIMES = 30;

    /** In which anyone else who wants memory is refused as well. */
    private static final long HELD_MS = 20;

    private static volatile Object[] held;

    private MemoryApplication() {}

    public static void main(String[] arguments) throws Exception {
        Thread.setDefaultUncaughtExceptionHandler((thread, thrown) -> Runtime.getRuntime().halt(STATUS));
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        in.readLine();
        for (int n = 0; n < TIMES; n++) {
            fill(1 << 20);
            fill(1 << 10);
            fill(0);
            Thread.sleep(HELD_MS);
            held = null;
        }
        System.out.println("survived_ns=" + System.nanoTime());
        System.out.println("survived");
        in.readLine();
    }

    private static void fill(int bytes) {
        try {
            while (true) {
                held = new Object[] {held, new byte[bytes]};
            }
        } catch (OutOfMemoryError full) {
            // As wanted.
        }
    }
}
