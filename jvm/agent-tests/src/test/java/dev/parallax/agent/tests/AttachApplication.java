package dev.parallax.agent.tests;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.sql.Connection;

/**
 * An application that has been at work, and asks its server and its database once more for each line of its input. One
 * connection it has from the start to the end.
 */
public final class AttachApplication {
    private AttachApplication() {}

    public static void main(String[] arguments) throws Exception {
        HttpClient client = HttpClient.newHttpClient();
        HttpRequest request = HttpRequest.newBuilder(URI.create(arguments[0])).build();
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl("jdbc:h2:mem:planted");
        config.setPoolName("early");
        HikariDataSource pool = new HikariDataSource(config);
        pool.getConnection().close();
        Connection lent = pool.getConnection();
        System.out.println("answered " + client.send(request, BodyHandlers.ofString()).body());
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); !"end".equals(line); line = in.readLine()) {
            pool.getConnection().close();
            System.out.println(line + " " + client.send(request, BodyHandlers.ofString()).body());
        }
        lent.close();
        pool.close();
        System.out.println("ran");
    }
}
