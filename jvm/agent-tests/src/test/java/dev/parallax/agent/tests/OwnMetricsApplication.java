package dev.parallax.agent.tests;

import com.zaxxer.hikari.HikariConfig;
import dev.parallax.hikaricp.MeasuredDataSource;
import dev.parallax.httpclient5.HttpClientMetrics;
import org.apache.hc.client5.http.classic.methods.HttpGet;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.apache.hc.core5.http.io.entity.EntityUtils;

/** An application that measures itself, by our modules on its own class path. Prints what it saw. */
public final class OwnMetricsApplication {
    private OwnMetricsApplication() {}

    public static void main(String[] arguments) throws Exception {
        HttpClientMetrics metrics = new HttpClientMetrics();
        try (CloseableHttpClient client = metrics.install(HttpClients.custom()).build()) {
            client.execute(new HttpGet(arguments[0]), response -> {
                EntityUtils.consume(response.getEntity());
                return response.getCode();
            });
        }
        System.out.println("waits=" + metrics.servers().get(0).waits().total().count());
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl("jdbc:h2:mem:planted");
        try (MeasuredDataSource pool = new MeasuredDataSource(config)) {
            pool.getConnection().close();
            System.out.println("uses=" + pool.metrics().uses().total().count());
        }
    }
}
