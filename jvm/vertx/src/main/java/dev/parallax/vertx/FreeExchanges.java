package dev.parallax.vertx;

import java.util.Arrays;

/**
 * Exchanges that one thread began and that are over, of whatever server or client: few, so that few of those are held by them.
 * What ends on another thread is left to the garbage collector.
 */
final class FreeExchanges {
    /** Where more are under way at once on a thread, those beyond are allocated. */
    private static final int MAX = 256;

    private static final ThreadLocal<FreeExchanges> OF_THREAD = ThreadLocal.withInitial(FreeExchanges::new);

    private final Thread owner = Thread.currentThread();
    private Exchange[] free = new Exchange[8];
    private int count;

    private FreeExchanges() {}

    static FreeExchanges ofThisThread() {
        return OF_THREAD.get();
    }

    /** Called by the owner. */
    Exchange take() {
        if (count == 0) {
            return new Exchange(this);
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
