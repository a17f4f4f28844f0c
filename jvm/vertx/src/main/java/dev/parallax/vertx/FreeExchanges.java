package dev.parallax.vertx;

import java.util.Arrays;

/** Exchanges that one thread began and that are over. Others' threads leave theirs to the garbage collector. */
final class FreeExchanges {
    /** More are under way at once on a thread only where it has as many streams. */
    private static final int MAX = 1024;

    private final Thread owner = Thread.currentThread();
    private Exchange[] free = new Exchange[8];
    private int count;

    /** Called by the owner. Null where there is none. */
    Exchange take() {
        if (count == 0) {
            return null;
        }
        Exchange taken = free[--count];
        free[count] = null;
        return taken;
    }

    /** Called by anyone. */
    void give(Exchange exchange) {
        if (Thread.currentThread() != owner || count == MAX) {
            return;
        }
        if (count == free.length) {
            free = Arrays.copyOf(free, 2 * count);
        }
        free[count++] = exchange;
    }
}
