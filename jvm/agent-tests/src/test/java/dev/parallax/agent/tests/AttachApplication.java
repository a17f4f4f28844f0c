package dev.parallax.agent.tests;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import com.zaxxer.hikari.metrics.IMetricsTracker;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.sql.Connection;
import java.sql.SQLException;

/**
 * An application that is already running, and sends one more request to its server and its database for each line of
 * its input. It keeps one connection of each pool from start to end: of a plain pool, and of one with a tracker. For
 * each use it prints the longest time that is within it and the shortest time that encloses it, in nanoseconds.
 */
public final class AttachApplication {
    static final int KEEP_MS = 5;

    private AttachApplication() {}

    public static void main(String[] arguments) throws Exception {
        HttpClient client = HttpClient.newHttpClient();
        HttpRequest request = HttpRequest.newBuilder(URI.create(arguments[0])).build();
        HikariDataSource plain = pool("early");
        HikariDataSource tracked = pool("tracked");
        tracked.setMetricsTrackerFactory((name, stats) -> new IMetricsTracker() {});
        plain.getConnection().close();
        Use first = new Use(plain);
        Use second = new Use(tracked);
        System.out.println("answered " + client.send(request, BodyHandlers.ofString()).body());
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); !"end".equals(line); line = in.readLine()) {
            Use use = new Use(plain);
            Thread.sleep(KEEP_MS);
            use.ends(line);
            System.out.println(line + " " + client.send(request, BodyHandlers.ofString()).body());
        }
        first.ends("early");
        second.ends("tracked");
        plain.close();
        tracked.close();
        System.out.println("ran");
    }

    private static HikariDataSource pool(String name) {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl("jdbc:h2:mem:planted");
        config.setPoolName(name);
        return new HikariDataSource(config);
    }

    /** A lent connection, with the caller's own timestamps. */
    private static final class Use {
        private final long askedNs = System.nanoTime();
        private final Connection lent;
        private final long gotNs;

        Use(HikariDataSource pool) throws SQLException {
            lent = pool.getConnection();
            gotNs = System.nanoTime();
        }

        void ends(String name) throws SQLException {
            long leastNs = System.nanoTime() - gotNs;
            lent.close();
            System.out.println("use " + name + "=" + leastNs + "," + (System.nanoTime() - askedNs));
        }
    }
}
