package dev.parallax.agent.tests;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import dev.parallax.httpclient5.HttpClientMetrics;
import org.apache.hc.client5.http.classic.methods.HttpGet;
import org.apache.hc.client5.http.impl.async.HttpAsyncClients;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.HttpClientBuilder;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.apache.hc.core5.http.io.entity.EntityUtils;

/**
 * An application with older libraries, which sends requests to a server and a database. With a second argument it first
 * tries to have its client measured, and prints why that is refused.
 */
public final class OlderApplication {
    private OlderApplication() {}

    public static void main(String[] arguments) throws Exception {
        HttpClientBuilder builder = HttpClients.custom();
        if (arguments.length > 1) {
            Own.measure(builder);
        }
        try (CloseableHttpClient client = builder.build()) {
            System.out.println("status=" + client.execute(new HttpGet(arguments[0]), response -> {
                EntityUtils.consume(response.getEntity());
                return response.getCode();
            }));
        }
        HttpAsyncClients.createDefault().close();
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl("jdbc:h2:mem:planted");
        try (HikariDataSource pool = new HikariDataSource(config)) {
            pool.getConnection().close();
        }
        System.out.println("ran");
    }

    /** In a separate class, because an application without our classes cannot load it. */
    private static final class Own {
        static void measure(HttpClientBuilder builder) {
            HttpClientMetrics metrics = new HttpClientMetrics();
            refused(() -> metrics.install(builder));
            refused(() -> metrics.install(HttpAsyncClients.custom()));
            refused(() -> metrics.install(HttpClients.createDefault()));
        }

        private static void refused(Runnable install) {
            try {
                install.run();
                System.out.println("not refused");
            } catch (UnsupportedOperationException e) {
                System.out.println(e.getMessage());
            }
        }
    }
}
