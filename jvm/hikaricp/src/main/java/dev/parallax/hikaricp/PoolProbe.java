package dev.parallax.hikaricp;

import com.zaxxer.hikari.HikariPoolMXBean;
import com.zaxxer.hikari.metrics.MetricsTrackerFactory;
import java.lang.ref.WeakReference;
import java.sql.Connection;

/**
 * Measures a pool from inside, for an agent that instruments the pool's code: no object of the pool or of a borrower is
 * replaced. Without an agent use {@link MeasuredDataSource}.
 *
 * <p>Differences: creating a connection includes its set-up by the pool, for example {@code connectionInitSql}; data
 * sources from JNDI are fully measured; every use is seen.
 */
public final class PoolProbe {
    private final PoolMetrics metrics;
    private final Step test = new Test();

    /**
     * Measures one pool.
     *
     * @param pool held by a weak reference
     */
    public PoolProbe(HikariPoolMXBean pool) {
        WeakReference<HikariPoolMXBean> reference = new WeakReference<>(pool);
        metrics = new PoolMetrics(reference::get);
    }

    /** A step in progress; the thread that started it must end it. */
    public interface Step {
        /**
         * Ends the step.
         *
         * @param thrown by the pool; null on success
         */
        void end(Throwable thrown);
    }

    /**
     * What is measured.
     *
     * @return always the same object
     */
    public PoolMetrics metrics() {
        return metrics;
    }

    /**
     * Creates the tracker factory to give to the pool.
     *
     * @param other the application's factory, which keeps receiving its figures; may be null
     * @return a factory that passes everything on to {@code other}
     */
    public MetricsTrackerFactory tracker(MetricsTrackerFactory other) {
        return new Tracker(metrics, other, () -> true);
    }

    /**
     * A borrower asks for a connection.
     *
     * @param isSuspendable whether the pool may be suspended
     * @return to be ended when the borrower has a connection, or none
     */
    public Step startBorrow(boolean isSuspendable) {
        Borrow borrow = Borrow.begin(isSuspendable, () -> true);
        Step step = thrown -> end(borrow, thrown);
        // Last: if creating the step fails, for example for lack of memory, nobody would end it and the borrower would
        // count as waiting for ever.
        metrics.startWaiting();
        return step;
    }

    private void end(Borrow borrow, Throwable thrown) {
        metrics.stopWaiting();
        Borrow.end();
        if (thrown == null) {
            // A pool that was running before has its own tracker and does not report to ours.
            borrow.markAcquiredIfUnreported();
            metrics.recordLent(borrow);
        } else {
            boolean isClosed = String.valueOf(thrown.getMessage()).contains("has been closed");
            metrics.recordFailed(borrow, thrown, isClosed);
        }
    }

    /**
     * The pool tests a connection.
     *
     * @param connection the driver's
     * @return to be ended with the test; null if no borrower waits for it
     */
    public Step startTest(Connection connection) {
        Borrow borrow = Borrow.current();
        if (borrow == null) {
            return null;
        }
        borrow.startTest(connection);
        return test;
    }

    private static final class Test implements Step {
        @Override
        public void end(Throwable thrown) {
            Borrow borrow = Borrow.current();
            if (borrow != null) {
                borrow.endTest();
            }
        }
    }

    /**
     * The pool creates a connection.
     *
     * @return to be ended when the connection exists, or failed
     */
    public Step startCreate() {
        long begunNs = System.nanoTime();
        return thrown -> (thrown == null ? metrics.creations() : metrics.failedCreations()).recordSince(begunNs);
    }

    /**
     * The pool lends a connection to this thread without keeping the time itself.
     *
     * @return when it was lent, by {@link System#nanoTime()}
     */
    public long markLent() {
        Borrow borrow = Borrow.current();
        if (borrow == null) {
            return System.nanoTime();
        }
        borrow.markAcquiredIfUnreported();
        return borrow.gotNs();
    }

    /**
     * The pool got a connection back.
     *
     * @param lentNs when it was lent, by {@link System#nanoTime()}
     * @return null: there is nothing to end
     */
    public Step recordUse(long lentNs) {
        metrics.uses().recordSince(lentNs);
        return null;
    }
}
