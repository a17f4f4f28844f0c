package dev.parallax.vertx;

/**
 * Exchanges that one thread began and that are over, of whatever server or client: few, so that few of those are held by them.
 * What ends on another thread is left to the garbage collector.
 */
final class FreeExchanges {
    /** Where more are under way at once on a thread, those beyond are allocated. */
    private static final int MAX = 256;

    private static final ThreadLocal<FreeExchanges> OF_THREAD = ThreadLocal.withInitial(FreeExchanges::new);

    private final Thread owner = Thread.currentThread();

    /** The one that ended last, which knows the one before: what was just used is near. */
    private Exchange last;

    private int count;

    private FreeExchanges() {}

    /**
     * Those of some threads by their numbers. A thread-local one lies behind five places in memory, which an event loop that has
     * done anything else meanwhile has to fetch again; here are two.
     */
    static final class ByThread {
        private static final int PLACES = 64;

        /** Any thread reads and writes them, in no order: whose one is, is final in it. */
        private final FreeExchanges[] places = new FreeExchanges[PLACES];

        FreeExchanges ofThisThread() {
            Thread thread = Thread.currentThread();
            FreeExchanges here = places[(int) thread.getId() & PLACES - 1];
            return here != null && here.owner == thread ? here : settle(thread, here);
        }

        /** Threads that have ended are not held for longer than until a new one comes. */
        private FreeExchanges settle(Thread thread, FreeExchanges here) {
            FreeExchanges its = OF_THREAD.get();
            if (here == null || !here.owner.isAlive()) {
                for (int place = 0; place < PLACES; place++) {
                    FreeExchanges other = places[place];
                    if (other != null && !other.owner.isAlive()) {
                        places[place] = null;
                    }
                }
                places[(int) thread.getId() & PLACES - 1] = its;
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
        last = taken.before;
        taken.before = null;
        count--;
        return taken;
    }

    /** Called by anyone. */
    void give(Exchange exchange) {
        if (Thread.currentThread() != owner || count == MAX) {
            return;
        }
        exchange.before = last;
        last = exchange;
        count++;
    }
}
