package dev.parallax.hikaricp;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.function.BooleanSupplier;

/** One caller within {@code getConnection()}, which all happens on its thread: so what happens there finds it by that. */
final class Borrow {
    private static final ThreadLocal<Borrow> NOW = new ThreadLocal<>();

    private final long askedNs = System.nanoTime();
    private boolean isSuspendable;
    private final BooleanSupplier hasStarted;
    private long startNs;
    private long gotNs;
    private boolean isTimeout;

    /** The connection that is tested, and of those before it how long it took. */
    private Connection tested;

    private long testBegunNs;
    private long testEndedNs;
    private long testNs;

    /** What borrows of the pool itself. */
    interface Loan {
        Connection take() throws SQLException;
    }

    /**
     * @param isSuspendable whether what comes before the pool's own stamp is a suspension
     * @param hasStarted whether the pool has, without which what it does with connections is no test of one
     */
    static Connection measured(
            PoolMetrics metrics, boolean isSuspendable, BooleanSupplier hasStarted, Loan loan, BooleanSupplier isClosed)
            throws SQLException {
        Borrow borrow = begin(isSuspendable, hasStarted);
        metrics.asks();
        Connection lent;
        try {
            lent = loan.take();
        } catch (Throwable thrown) {
            metrics.failed(borrow, thrown, isClosed.getAsBoolean());
            throw thrown;
        } finally {
            metrics.asksNoMore();
            end();
        }
        boolean isTold = borrow.hasUnlessTold();
        metrics.lent(borrow);
        return new LentConnection(lent, metrics, borrow.gotNs(), isTold);
    }

    private Borrow(boolean isSuspendable, BooleanSupplier hasStarted) {
        this.isSuspendable = isSuspendable;
        this.hasStarted = hasStarted;
    }

    static Borrow begin(boolean isSuspendable, BooleanSupplier hasStarted) {
        Borrow begun = new Borrow(isSuspendable, hasStarted);
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

    /**
     * Where nobody told that a connection was acquired, it is now: all but its test is wait, and what of that was a suspension
     * is not known. Returns whether somebody told.
     */
    boolean hasUnlessTold() {
        if (gotNs != 0) {
            return true;
        }
        gotNs = System.nanoTime();
        startNs = askedNs;
        isSuspendable = false;
        addTest();
        return false;
    }

    void timedOut() {
        isTimeout = true;
    }

    /** The pool touches connections while it borrows for one reason alone. Begins with the first call, ends with the last. */
    void tests(Connection connection) {
        if (tested != connection && hasStarted.getAsBoolean()) {
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
