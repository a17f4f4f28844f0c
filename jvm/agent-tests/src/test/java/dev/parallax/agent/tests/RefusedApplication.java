package dev.parallax.agent.tests;

import com.zaxxer.hikari.HikariDataSource;
import java.sql.SQLException;

/** An application in which the agent gets no memory and stack for a while, when it reads a pool's configuration. */
public final class RefusedApplication {
    static final int TIMES = 3;

    private RefusedApplication() {}

    /** Called when a connection is borrowed; the pool itself calls it when it starts. */
    private static final class Pool extends HikariDataSource {
        private Error refusal;

        @Override
        public boolean isAllowPoolSuspension() {
            if (refusal != null) {
                throw refusal;
            }
            return super.isAllowPoolSuspension();
        }
    }

    public static void main(String[] arguments) throws Exception {
        try (Pool pool = new Pool()) {
            pool.setJdbcUrl("jdbc:h2:mem:planted");
            pool.setPoolName("orders");
            borrow(pool, null);
            borrow(pool, new OutOfMemoryError("planted"));
            borrow(pool, new StackOverflowError("planted"));
            borrow(pool, null);
        }
    }

    private static void borrow(Pool pool, Error refusal) throws SQLException {
        pool.refusal = refusal;
        for (int n = 0; n < TIMES; n++) {
            pool.getConnection().close();
        }
    }
}
