package dev.parallax.hikaricp;

import java.sql.Connection;

/** One caller within {@code getConnection()}, which all happens on its thread: so what happens there finds it by that. */
final class Borrow {
    private static final ThreadLocal<Borrow> NOW = new ThreadLocal<>();

    private final long askedNs = System.nanoTime();
    private final boolean isSuspendable;
    private long startNs;
    private long gotNs;
    private boolean isTimeout;

    /** The connection that is tested, and of those before it how long it took. */
    private Connection tested;

    private long testBegunNs;
    private long testEndedNs;
    private long testNs;

    private Borrow(boolean isSuspendable) {
        this.isSuspendable = isSuspendable;
    }

    /** @param isSuspendable whether what comes before the pool's own stamp is a suspension */
    static Borrow begin(boolean isSuspendable) {
        Borrow begun = new Borrow(isSuspendable);
        NOW.set(begun);
        return begun;
    }

    static void end() {
        NOW.set(null);
    }

    /** That of this thread; null where it does not borrow. */
    static Borrow now() {
        return NOW.get();
    }

    /** The pool's own stamp: what comes before is suspension, and the first borrower's start of the pool. */
    void acquired(long elapsedNs) {
        gotNs = System.nanoTime();
        startNs = gotNs - elapsedNs;
        addTest();
    }

    void timedOut() {
        isTimeout = true;
    }

    /** The pool touches connections while it borrows for one reason alone. Begins with the first call, ends with the last. */
    void tests(Connection connection) {
        if (tested != connection) {
            addTest();
            tested = connection;
            testBegunNs = System.nanoTime();
        }
    }

    void tested() {
        testEndedNs = System.nanoTime();
    }

    private void addTest() {
        if (tested != null) {
            testNs += testEndedNs - testBegunNs;
            tested = null;
        }
    }

    long askedNs() {
        return askedNs;
    }

    /** Never before it was asked for: where Hikari's clock counts in milliseconds, its stamp may be. */
    long startNs() {
        return startNs - askedNs < 0 ? askedNs : startNs;
    }

    long gotNs() {
        return gotNs;
    }

    long testNs() {
        return testNs;
    }

    boolean isSuspendable() {
        return isSuspendable;
    }

    boolean isTimeout() {
        return isTimeout;
    }
}
