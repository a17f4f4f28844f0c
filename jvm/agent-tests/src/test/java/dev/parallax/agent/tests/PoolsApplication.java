package dev.parallax.agent.tests;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.sql.SQLException;

/** An application with a pool that lives on, and many of the same name that do not. Prints how often it borrowed. */
public final class PoolsApplication {
    private static final int POOLS = 100;
    private static final int OFTEN = 10;
    private static int borrowed;

    private PoolsApplication() {}

    public static void main(String[] arguments) throws Exception {
        try (HikariDataSource live = pool()) {
            for (int i = 0; i < POOLS; i++) {
                borrow(live);
                try (HikariDataSource brief = pool()) {
                    borrow(brief);
                }
                if (i % OFTEN == 0) {
                    // Intervals of the record pass before the pools are collected, and after.
                    Thread.sleep(150);
                    System.gc();
                }
            }
        }
        System.out.println("borrowed=" + borrowed);
    }

    private static void borrow(HikariDataSource pool) throws SQLException {
        for (int i = 0; i < OFTEN; i++) {
            pool.getConnection().close();
            borrowed++;
        }
    }

    private static HikariDataSource pool() {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl("jdbc:h2:mem:planted");
        config.setMaximumPoolSize(1);
        config.setPoolName("main");
        return new HikariDataSource(config);
    }
}
