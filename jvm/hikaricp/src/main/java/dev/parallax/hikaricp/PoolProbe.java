package dev.parallax.hikaricp;

import com.zaxxer.hikari.HikariPoolMXBean;
import com.zaxxer.hikari.metrics.MetricsTrackerFactory;
import java.lang.ref.WeakReference;
import java.sql.Connection;

/**
 * Measures a pool from within, for an agent that changes the pool's code: nothing that the pool or a borrower holds is
 * replaced. Everybody else has {@link MeasuredDataSource}.
 *
 * <p>What differs: making a connection has its set-up by the pool in it, {@code connectionInitSql} for one; data sources
 * from JNDI are measured as any; and all uses are seen.
 */
public final class PoolProbe {
    private final PoolMetrics metrics;
    private final Step test = new Test();

    /**
     * For one pool.
     *
     * @param pool not held
     */
    public PoolProbe(HikariPoolMXBean pool) {
        WeakReference<HikariPoolMXBean> reference = new WeakReference<>(pool);
        metrics = new PoolMetrics(reference::get);
    }

    /** Something under way, to be ended by the thread that began it. */
    public interface Step {
        /**
         * It is over.
         *
         * @param thrown by the pool; null when it went well
         */
        void ends(Throwable thrown);
    }

    /**
     * What is measured.
     *
     * @return always the same
     */
    public PoolMetrics metrics() {
        return metrics;
    }

    /**
     * What the pool is to be given as its tracker.
     *
     * @param other the one that it was to have; may be null
     * @return one that hands on to it
     */
    public MetricsTrackerFactory tracker(MetricsTrackerFactory other) {
        return new Tracker(metrics, other, () -> true);
    }

    /**
     * A borrower comes.
     *
     * @param isSuspendable whether the pool may be suspended
     * @return to be ended when it has a connection, or none
     */
    public Step borrows(boolean isSuspendable) {
        Borrow borrow = Borrow.begin(isSuspendable, () -> true);
        Step step = thrown -> ends(borrow, thrown);
        // Last: who has no step, be it for want of memory, has none to end, and would be waiting for ever.
        metrics.asks();
        return step;
    }

    private void ends(Borrow borrow, Throwable thrown) {
        metrics.asksNoMore();
        Borrow.end();
        if (thrown == null) {
            // A pool that ran before has its tracker already, which is not ours.
            borrow.hasUnlessTold();
            metrics.lent(borrow);
        } else {
            boolean isClosed = String.valueOf(thrown.getMessage()).contains("has been closed");
            metrics.failed(borrow, thrown, isClosed);
        }
    }

    /**
     * The pool tests a connection.
     *
     * @param connection the driver's
     * @return null where no borrower waits for it
     */
    public Step tests(Connection connection) {
        Borrow borrow = Borrow.now();
        if (borrow == null) {
            return null;
        }
        borrow.tests(connection);
        return test;
    }

    private static final class Test implements Step {
        @Override
        public void ends(Throwable thrown) {
            Borrow borrow = Borrow.now();
            if (borrow != null) {
                borrow.tested();
            }
        }
    }

    /**
     * The pool makes a connection.
     *
     * @return to be ended when it is made, or is not
     */
    public Step creates() {
        long begunNs = System.nanoTime();
        return thrown -> (thrown == null ? metrics.creations() : metrics.failedCreations()).recordSince(begunNs);
    }

    /**
     * The pool lends a connection to this thread, and does not keep when.
     *
     * @return now, of {@link System#nanoTime()}: where the wait for it ends
     */
    public long lends() {
        Borrow borrow = Borrow.now();
        if (borrow == null) {
            return System.nanoTime();
        }
        borrow.hasUnlessTold();
        return borrow.gotNs();
    }

    /**
     * The pool has a connection back.
     *
     * @param lentNs since when it was lent, of {@link System#nanoTime()}
     * @return null: there is nothing to end
     */
    public Step used(long lentNs) {
        metrics.uses().recordSince(lentNs);
        return null;
    }
}
