package dev.parallax.hikaricp;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.function.BooleanSupplier;

/** One call of {@code getConnection()}. All of it happens on the borrower's thread, so a thread-local finds it. */
final class Borrow {
    private static final ThreadLocal<Borrow> CURRENT = new ThreadLocal<>();

    private final long askedNs = System.nanoTime();
    private boolean isSuspendable;
    private final BooleanSupplier hasStarted;
    private long startNs;
    private long gotNs;
    private boolean isTimeout;

    /** The connection under test; {@code testNs} has the time of the tests before it. */
    private Connection tested;

    private long testBegunNs;
    private long testEndedNs;
    private long testNs;

    /** Takes a connection from the pool itself. */
    interface Loan {
        Connection take() throws SQLException;
    }

    /**
     * @param isSuspendable whether time before the pool's own start stamp is a suspension
     * @param hasStarted whether the pool has started; before that, calls to connections are not tests
     */
    static Connection measured(
            PoolMetrics metrics, boolean isSuspendable, BooleanSupplier hasStarted, Loan loan, BooleanSupplier isClosed)
            throws SQLException {
        Borrow borrow = begin(isSuspendable, hasStarted);
        metrics.startWaiting();
        Connection lent;
        try {
            lent = loan.take();
        } catch (Throwable thrown) {
            metrics.recordFailed(borrow, thrown, isClosed.getAsBoolean());
            throw thrown;
        } finally {
            metrics.stopWaiting();
            end();
        }
        boolean isReported = borrow.markAcquiredIfUnreported();
        metrics.recordLent(borrow);
        return new LentConnection(lent, metrics, borrow.gotNs(), isReported);
    }

    private Borrow(boolean isSuspendable, BooleanSupplier hasStarted) {
        this.isSuspendable = isSuspendable;
        this.hasStarted = hasStarted;
    }

    static Borrow begin(boolean isSuspendable, BooleanSupplier hasStarted) {
        Borrow begun = new Borrow(isSuspendable, hasStarted);
        CURRENT.set(begun);
        return begun;
    }

    static void end() {
        CURRENT.set(null);
    }

    /** The borrow in progress on this thread; null if there is none. */
    static Borrow current() {
        return CURRENT.get();
    }

    /** Uses the pool's own stamp: time before it is a suspension, or the start of the pool by its first borrower. */
    void markAcquired(long elapsedNs) {
        gotNs = System.nanoTime();
        startNs = gotNs - elapsedNs;
        addTest();
    }

    /**
     * If the pool reported no acquisition, it is assumed to be now: all time but the test is wait, and a suspension
     * cannot be distinguished from it. Returns whether the pool reported it.
     */
    boolean markAcquiredIfUnreported() {
        if (gotNs != 0) {
            return true;
        }
        gotNs = System.nanoTime();
        startNs = askedNs;
        isSuspendable = false;
        addTest();
        return false;
    }

    void markTimedOut() {
        isTimeout = true;
    }

    /**
     * While it borrows, the pool calls a connection only to test it. The test starts with the first call and ends with
     * the last.
     */
    void startTest(Connection connection) {
        if (tested != connection && hasStarted.getAsBoolean()) {
            addTest();
            tested = connection;
            testBegunNs = System.nanoTime();
        }
    }

    void endTest() {
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

    /** Never before the request: Hikari's stamp can be earlier on platforms where its clock counts milliseconds. */
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
