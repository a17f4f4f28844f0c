package dev.parallax.hikaricp;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.concurrent.atomic.AtomicBoolean;

/** What a borrower holds: the pool's connection, with the moment in which it was lent. */
final class LentConnection extends PassingConnection {
    /** That which this thread gives back: the pool tells of it before another borrower gets it. */
    private static final ThreadLocal<LentConnection> GIVEN_BACK = new ThreadLocal<>();

    private final PoolMetrics metrics;
    private final long lentNs;
    private final boolean isTold;
    private final AtomicBoolean isOver = new AtomicBoolean();

    /** @param isTold whether the pool tells us what it lends and has back */
    LentConnection(Connection connection, PoolMetrics metrics, long lentNs, boolean isTold) {
        super(connection);
        this.isTold = isTold;
        this.metrics = metrics;
        this.lentNs = lentNs;
    }

    /** The pool has a connection back, from this thread. False where that is not one of ours. */
    static boolean isBack() {
        LentConnection back = GIVEN_BACK.get();
        if (back == null) {
            return false;
        }
        back.ends();
        return true;
    }

    /** Closing again, and by others at once, does what it does without us. */
    @Override
    public void close() throws SQLException {
        // A pool that was closed meanwhile tells of nothing that comes back.
        boolean isEnd = !isTold || !to.isClosed();
        GIVEN_BACK.set(this);
        try {
            to.close();
        } finally {
            GIVEN_BACK.set(null);
            if (isEnd) {
                ends();
            }
        }
    }

    /** It is not the borrower's any more. */
    void ends() {
        if (isOver.compareAndSet(false, true)) {
            metrics.uses().record(lentNs, System.nanoTime());
        }
    }
}
