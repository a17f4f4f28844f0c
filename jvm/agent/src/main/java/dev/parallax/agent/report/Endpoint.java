package dev.parallax.agent.report;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.parallax.recorder.Durations;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Answers GET {@code /} with text and {@code /json} with JSON, on loopback alone, as of now.
 *
 * <p>Only requests for a name of the loopback are answered: a page that a browser of this host shows could otherwise name
 * a host of its own, let it resolve to here, and read. Whoever holds connections open holds two threads of ours, no more,
 * and none of the application.
 */
public final class Endpoint {
    private static final int THREADS = 2;
    private static final int BACKLOG = 8;
    private static final double[] QUANTILES = {0.5, 0.9, 0.99, 0.999};
    private static final List<String> HOSTS = List.of("localhost", "127.0.0.1", "[::1]");

    private final List<Source> sources;

    private Endpoint(List<Source> sources) {
        this.sources = sources;
    }

    /**
     * Starts one.
     *
     * @param sources of what is told
     * @param port 0 for any
     * @return the port
     * @throws IOException when the port is taken
     */
    public static int start(List<Source> sources, int port) throws IOException {
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), BACKLOG);
        Endpoint endpoint = new Endpoint(List.copyOf(sources));
        ExecutorService threads = Executors.newFixedThreadPool(THREADS, task -> {
            Thread thread = new Thread(task, "parallax-endpoint");
            thread.setDaemon(true);
            return thread;
        });
        server.setExecutor(threads);
        server.createContext("/", endpoint::answer);
        // The server's own thread is a daemon if the one that starts it is.
        Thread starter = new Thread(server::start, "parallax-endpoint-start");
        starter.setDaemon(true);
        starter.start();
        return server.getAddress().getPort();
    }

    private void answer(HttpExchange exchange) throws IOException {
        try (exchange) {
            String path = exchange.getRequestURI().getPath();
            if (!isLocal(exchange.getRequestHeaders().get("Host"))) {
                send(exchange, 403, "text/plain", "this answers for localhost only\n");
            } else if (!exchange.getRequestMethod().equals("GET")) {
                exchange.getResponseHeaders().set("Allow", "GET");
                send(exchange, 405, "text/plain", "GET only\n");
            } else if ("/".equals(path)) {
                send(exchange, 200, "text/plain; charset=utf-8", text(read()));
            } else if ("/json".equals(path)) {
                send(exchange, 200, "application/json", json(read()));
            } else {
                send(exchange, 404, "text/plain", "there are / and /json\n");
            }
        }
    }

    private static boolean isLocal(List<String> hosts) {
        if (hosts == null || hosts.size() != 1) {
            return false;
        }
        String host = hosts.get(0).toLowerCase(Locale.ROOT).replaceFirst(":[0-9]{1,5}$", "");
        return HOSTS.contains(host);
    }

    private static void send(HttpExchange exchange, int status, String type, String body) throws IOException {
        byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().set("Content-Type", type);
        exchange.getResponseHeaders().set("Cache-Control", "no-store");
        exchange.getResponseHeaders().set("X-Content-Type-Options", "nosniff");
        exchange.sendResponseHeaders(status, bytes.length);
        exchange.getResponseBody().write(bytes);
    }

    /** One at a time: two that ask at once do not walk the same recorders twice. */
    private synchronized Now read() {
        Now now = new Now(new TreeMap<>(), new TreeMap<>());
        for (Source source : sources) {
            source.read(now);
        }
        return now;
    }

    private record Now(Map<Key, Durations> durations, Map<Key, Long> numbers) implements Reader {
        @Override
        public void durations(Series series, String label, Durations total) {
            if (total.count() > 0) {
                durations.merge(new Key(series, label), total, Durations::plus);
            }
        }

        @Override
        public void number(Series series, String label, long value) {
            numbers.merge(new Key(series, label), value, Long::sum);
        }
    }

    private record Key(Series series, String label) implements Comparable<Key> {
        @Override
        public int compareTo(Key other) {
            int order = series.compareTo(other.series);
            return order != 0 ? order : label.compareTo(other.label);
        }
    }

    private static String text(Now now) {
        StringBuilder text = new StringBuilder(String.format(
                Locale.ROOT, "%-60s %10s %10s %10s %10s %10s %10s%n",
                "milliseconds", "count", "p50", "p90", "p99", "p99.9", "max"));
        now.durations.forEach((key, total) -> {
            text.append(String.format(Locale.ROOT, "%-60s %10d", name(key), total.count()));
            for (double quantile : QUANTILES) {
                text.append(String.format(Locale.ROOT, " %10.3f", atNs(total, quantile) / 1e6));
            }
            text.append(String.format(Locale.ROOT, " %10.3f%n", total.maxNs().orElse(0) / 1e6));
        });
        now.numbers.forEach((key, value) -> text.append(String.format(Locale.ROOT, "%-60s %10d%n", name(key), value)));
        return text.toString();
    }

    private static String name(Key key) {
        return key.label.isEmpty() ? key.series.title() : key.series.title() + " " + key.label.replaceAll("\\s", "_");
    }

    private static String json(Now now) {
        StringBuilder text = new StringBuilder("{\"series\":[");
        String separator = "";
        for (Map.Entry<Key, Durations> one : now.durations.entrySet()) {
            Durations total = one.getValue();
            text.append(separator).append(head(one.getKey()))
                    .append(",\"count\":").append(total.count())
                    .append(",\"sum_ns\":").append(total.sumNs());
            for (double quantile : QUANTILES) {
                text.append(",\"p").append(quantile * 100).append("_ns\":").append(atNs(total, quantile));
            }
            text.append(",\"max_ns\":").append(total.maxNs().orElse(0)).append('}');
            separator = ",";
        }
        for (Map.Entry<Key, Long> one : now.numbers.entrySet()) {
            text.append(separator).append(head(one.getKey())).append(",\"value\":").append(one.getValue()).append('}');
            separator = ",";
        }
        return text.append("]}\n").toString();
    }

    private static String head(Key key) {
        return "{\"name\":\"" + key.series.title() + "\",\"label\":\"" + quoted(key.label) + "\"";
    }

    /** Labels are of the application: a host's name, a pool's. */
    private static String quoted(String label) {
        StringBuilder text = new StringBuilder();
        for (char c : label.toCharArray()) {
            if (c == '"' || c == '\\' || c < ' ' || c > '~') {
                text.append(String.format(Locale.ROOT, "\\u%04x", (int) c));
            } else {
                text.append(c);
            }
        }
        return text.toString();
    }

    private static long atNs(Durations total, double quantile) {
        return total.atRank(Math.max(1, (long) Math.ceil(quantile * total.count()))).orElse(0);
    }
}
