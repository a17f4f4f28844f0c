package dev.parallax.vertx;

import io.vertx.core.Handler;
import io.vertx.core.Vertx;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.pgclient.PgBuilder;
import io.vertx.pgclient.PgConnectOptions;
import io.vertx.sqlclient.Pool;
import io.vertx.sqlclient.PoolOptions;
import io.vertx.sqlclient.Row;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/** A typical application page: twelve rows from PostgreSQL plus one, sorted, escaped and put into a template. */
final class Fortunes implements Handler<HttpServerRequest> {
    /** Creates the table; its text needs escaping. */
    static final String TABLE = "CREATE TABLE fortune (id integer PRIMARY KEY, message text NOT NULL);"
            + "INSERT INTO fortune SELECT n, 'Fortune ' || n || ': <script>a & \"b\"</script>' FROM generate_series(1, 12) AS n;";

    private static final String ADDED = "Additional fortune added at request time.";

    private final Pool pool;

    private record Fortune(int id, String message) {}

    Fortunes(Vertx vertx, int port) {
        PgConnectOptions server = new PgConnectOptions()
                .setHost("127.0.0.1")
                .setPort(port)
                .setUser("postgres")
                .setDatabase("postgres")
                .setCachePreparedStatements(true);
        pool = PgBuilder.pool().with(new PoolOptions().setMaxSize(8)).connectingTo(server).using(vertx).build();
    }

    @Override
    public void handle(HttpServerRequest request) {
        pool.preparedQuery("SELECT id, message FROM fortune").execute().onComplete(done -> {
            if (done.failed()) {
                request.response().setStatusCode(500).end(String.valueOf(done.cause()));
                return;
            }
            List<Fortune> fortunes = new ArrayList<>();
            for (Row row : done.result()) {
                fortunes.add(new Fortune(row.getInteger(0), row.getString(1)));
            }
            fortunes.add(new Fortune(0, ADDED));
            fortunes.sort(Comparator.comparing(Fortune::message));
            request.response().putHeader("Content-Type", "text/html; charset=UTF-8").end(page(fortunes));
        });
    }

    private static String page(List<Fortune> fortunes) {
        StringBuilder page = new StringBuilder(2_048);
        page.append("<!DOCTYPE html><html><head><title>Fortunes</title></head><body><table>");
        page.append("<tr><th>id</th><th>message</th></tr>");
        for (Fortune fortune : fortunes) {
            page.append("<tr><td>").append(fortune.id).append("</td><td>");
            escape(page, fortune.message);
            page.append("</td></tr>");
        }
        return page.append("</table></body></html>").toString();
    }

    private static void escape(StringBuilder page, String text) {
        for (int n = 0; n < text.length(); n++) {
            char c = text.charAt(n);
            switch (c) {
                case '<' -> page.append("&lt;");
                case '>' -> page.append("&gt;");
                case '&' -> page.append("&amp;");
                case '"' -> page.append("&quot;");
                case '\'' -> page.append("&#39;");
                default -> page.append(c);
            }
        }
    }
}
