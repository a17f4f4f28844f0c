package dev.parallax.vertx;

/**
 * Finished exchanges that one thread began, for any server or client. Bounded, since they hold references to their
 * servers. An exchange that ends on another thread is left to the garbage collector.
 */
final class FreeExchanges {
    /** If a thread has more in progress at once, the rest are allocated. */
    private static final int MAX = 256;

    private static final ThreadLocal<FreeExchanges> OF_THREAD = ThreadLocal.withInitial(FreeExchanges::new);

    private final Thread owner = Thread.currentThread();

    /** The one that ended last, head of a linked list: the most recently used is in the cache. */
    private Exchange last;

    private int count;

    private FreeExchanges() {}

    /**
     * A cache by thread id. A thread-local is five memory accesses away, which an event loop that did other work has to
     * fetch again; this is two.
     */
    static final class ByThread {
        private static final int SLOTS = 64;

        /** Read and written by all threads without ordering: the owner is a final field of the element. */
        private final FreeExchanges[] slots = new FreeExchanges[SLOTS];

        FreeExchanges ofThisThread() {
            Thread thread = Thread.currentThread();
            FreeExchanges here = slots[(int) thread.getId() & SLOTS - 1];
            return here != null && here.owner == thread ? here : claimSlot(thread, here);
        }

        /** Ended threads are held only until a new thread comes. */
        private FreeExchanges claimSlot(Thread thread, FreeExchanges here) {
            FreeExchanges its = OF_THREAD.get();
            if (here == null || !here.owner.isAlive()) {
                for (int slot = 0; slot < SLOTS; slot++) {
                    FreeExchanges other = slots[slot];
                    if (other != null && !other.owner.isAlive()) {
                        slots[slot] = null;
                    }
                }
                slots[(int) thread.getId() & SLOTS - 1] = its;
            }
            return its;
        }
    }

    /** Called by the owner. */
    Exchange take() {
        Exchange taken = last;
        if (taken == null) {
            return new Exchange(this);
        }
        last = taken.next;
        taken.next = null;
        count--;
        return taken;
    }

    /** Called by any thread. */
    void release(Exchange exchange) {
        if (Thread.currentThread() != owner || count == MAX) {
            return;
        }
        exchange.next = last;
        last = exchange;
        count++;
    }
}
