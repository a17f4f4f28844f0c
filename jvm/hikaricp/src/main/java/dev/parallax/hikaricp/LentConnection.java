package dev.parallax.hikaricp;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.concurrent.atomic.AtomicBoolean;

/** The connection a borrower holds: the pool's connection and the time it was lent. */
final class LentConnection extends DelegatingConnection {
    /** The connection this thread is returning: the pool reports the return before another borrower can get it. */
    private static final ThreadLocal<LentConnection> RETURNING = new ThreadLocal<>();

    private final PoolMetrics metrics;
    private final long lentNs;
    private final boolean isReported;
    private final AtomicBoolean isOver = new AtomicBoolean();

    /** @param isReported whether the pool reports what it lends and what comes back */
    LentConnection(Connection connection, PoolMetrics metrics, long lentNs, boolean isReported) {
        super(connection);
        this.isReported = isReported;
        this.metrics = metrics;
        this.lentNs = lentNs;
    }

    /** Marks the connection that this thread is returning as returned. False if it is not a measured one. */
    static boolean markReturned() {
        LentConnection back = RETURNING.get();
        if (back == null) {
            return false;
        }
        back.end();
        return true;
    }

    /** Closing a connection twice, or from several threads at once, has the same effect as on the pool's own. */
    @Override
    public void close() throws SQLException {
        // A pool that was closed in the meantime does not report what comes back.
        boolean isEnd = !isReported || !delegate.isClosed();
        RETURNING.set(this);
        try {
            delegate.close();
        } finally {
            RETURNING.set(null);
            if (isEnd) {
                end();
            }
        }
    }

    /** The borrower no longer has the connection. */
    void end() {
        if (isOver.compareAndSet(false, true)) {
            metrics.uses().record(lentNs, System.nanoTime());
        }
    }
}
