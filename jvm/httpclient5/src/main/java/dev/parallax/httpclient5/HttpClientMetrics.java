package dev.parallax.httpclient5;

import dev.parallax.recorder.Catalog;
import dev.parallax.recorder.Description;
import dev.parallax.recorder.Registration;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.ToIntFunction;
import org.apache.hc.client5.http.HttpRoute;
import org.apache.hc.client5.http.async.AsyncExecChainHandler;
import org.apache.hc.client5.http.classic.ExecChainHandler;
import org.apache.hc.client5.http.impl.async.CloseableHttpAsyncClient;
import org.apache.hc.client5.http.impl.async.HttpAsyncClientBuilder;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.HttpClientBuilder;
import org.apache.hc.client5.http.ssl.TlsSocketStrategy;
import org.apache.hc.core5.http.HttpHost;
import org.apache.hc.core5.http.nio.ssl.TlsStrategy;
import org.apache.hc.core5.pool.ConnPoolControl;
import org.apache.hc.core5.pool.PoolStats;

/**
 * What clients of Apache HttpClient, 5.6 and later, wait for, apart from what servers take.
 *
 * <pre>{@code
 * HttpClientMetrics metrics = new HttpClientMetrics();
 * CloseableHttpClient client = metrics.install(HttpClients.custom()).build();
 * }</pre>
 *
 * <p>It sits between the client's chain and its pool, so it works with any connection manager: the default one, one that is
 * wrapped, one of a kind of its own. Nothing of it is thrown into the application, and it holds no connection back.
 *
 * <p>Cost of a request: some eight readings of the clock, a few hundred bytes in short-lived objects, no lock. It never
 * asks the pool for its statistics, which takes the pool's lock and walks all that wait; {@link #pools()} does, when read,
 * and so does a catalog that this is shown in.
 *
 * <p>Names follow OpenTelemetry's semantic conventions for HTTP clients where there is one, and for what only databases
 * have one there ({@code db.client.connection.wait_time}) with {@code http} in its place.
 */
public final class HttpClientMetrics {
    /** A client of many servers has tens; one that follows links would have no end of them. */
    static final int SERVERS_MAX = 200;

    private static final String HANDLER = "parallax";

    private final ConcurrentMap<HttpHost, ServerMetrics> servers = new ConcurrentHashMap<>();
    private final ServerMetrics other = new ServerMetrics("_OTHER", -1);
    /** Weakly: an application that makes clients without end must not have its pools kept by us. */
    private final List<WeakReference<ConnPoolControl<HttpRoute>>> pools = new CopyOnWriteArrayList<>();

    private final List<Showing> showings = new CopyOnWriteArrayList<>();
    private volatile boolean isOtherUsed;

    /** Of no client yet; may be installed in several, which are added up; twice in one counts once. */
    public HttpClientMetrics() {}

    /**
     * Measures what the builder is going to build. Call it after the connection manager is set, or its pool is not among
     * {@link #pools()}; and after other interceptors were put first, or they are not within {@link ServerMetrics#calls()}.
     *
     * @param builder as the application uses it
     * @return the same
     * @throws UnsupportedOperationException where HttpClient is older than 5.6
     */
    public HttpClientBuilder install(HttpClientBuilder builder) {
        LeastVersion.check();
        watch(builder.getConnManager());
        return builder.addExecInterceptorFirst(HANDLER, new MeasuredChain(this));
    }

    /**
     * Measures what the builder is going to build: as for a classic client.
     *
     * @param builder as the application uses it
     * @return the same
     * @throws UnsupportedOperationException where HttpClient is older than 5.6
     */
    public HttpAsyncClientBuilder install(HttpAsyncClientBuilder builder) {
        LeastVersion.check();
        watch(builder.getConnManager());
        return builder.addExecInterceptorFirst(HANDLER, new MeasuredAsyncChain(this));
    }

    /**
     * Measures a client whose builder is out of reach. It has no place for that, so it is changed within; call it before the
     * client is used.
     *
     * @param client as HttpClient's own builders make them; with Java 26 and later, one that was started with {@code
     *     --enable-final-field-mutation=ALL-UNNAMED} or warns
     * @return whether it is measured: not where it is of another kind, and not where it has changed too much
     * @throws UnsupportedOperationException where HttpClient is older than 5.6
     */
    public boolean install(CloseableHttpClient client) {
        return install(client, new MeasuredChain(this), ExecChainHandler.class);
    }

    /**
     * Measures a client whose builder is out of reach: as for a classic client.
     *
     * @param client as HttpClient's own builders make them
     * @return whether it is measured
     * @throws UnsupportedOperationException where HttpClient is older than 5.6
     */
    public boolean install(CloseableHttpAsyncClient client) {
        return install(client, new MeasuredAsyncChain(this), AsyncExecChainHandler.class);
    }

    private <S> boolean install(Object client, S step, Class<S> type) {
        LeastVersion.check();
        BuiltClient built = new BuiltClient(client);
        boolean isMeasured = built.prepend(step, type);
        if (isMeasured) {
            watch(built.manager());
        }
        return isMeasured;
    }

    /**
     * Tells handshakes from connects: a manager does both in one step, so its strategy has to be asked. Give the result to
     * the builder of the manager.
     *
     * @param strategy the application's own, or {@code DefaultClientTlsStrategy.createDefault()}
     * @return one that does the same
     */
    public TlsSocketStrategy stamped(TlsSocketStrategy strategy) {
        return StampedTls.of(strategy);
    }

    /**
     * Tells handshakes from connects, for asynchronous clients.
     *
     * @param strategy the application's own, or {@code DefaultClientTlsStrategy.createDefault()}
     * @return one that does the same
     */
    public TlsStrategy stamped(TlsStrategy strategy) {
        return StampedTls.of(strategy);
    }

    /**
     * The servers so far.
     *
     * @return a copy; the last one is of all servers beyond the limit, when there are
     */
    public List<ServerMetrics> servers() {
        List<ServerMetrics> all = new ArrayList<>(servers.values());
        if (all.size() >= SERVERS_MAX) {
            all.add(other);
        }
        return all;
    }

    /**
     * {@code http.client.open_connections} and their limit, of managers that can tell and were set in the builder. A client
     * that makes its own shows it to nobody: then this is empty, and {@link ServerMetrics#active()} is what there is.
     *
     * <p>Takes each pool's lock: for scraping.
     *
     * @return leased, pending, available and limit, one for each manager that is still in use
     */
    public List<PoolStats> pools() {
        List<PoolStats> stats = new ArrayList<>();
        for (WeakReference<ConnPoolControl<HttpRoute>> reference : pools) {
            ConnPoolControl<HttpRoute> pool = reference.get();
            if (pool != null) {
                stats.add(pool.getTotalStats());
            }
        }
        return stats;
    }

    /**
     * Shows what is measured in a catalog, servers to come included: under the names that are told with each, with {@code
     * server.address} and {@code server.port}. Beside those {@code http.client.open_connections} with {@code
     * http.connection.state=idle}, and {@code http.client.connection.max}, of the managers that can tell. Once for each
     * catalog: what is shown twice in one is told twice.
     *
     * @param catalog to show it in
     * @param labels of this client, to tell it from others that are shown there; they may be none, and then those are added up
     * @return until when it is shown
     */
    public Registration showIn(Catalog catalog, Map<String, String> labels) {
        // Names that the catalog has for something else are refused here, not when a request finds a new server.
        try (Showing trial = new Showing(catalog, labels)) {
            trial.showPools();
            // One that has nothing to tell: what is closed may stay told.
            trial.show(new ServerMetrics(other.address(), other.port()));
        }
        Showing showing = new Showing(catalog, labels);
        showing.showPools();
        // From here on a new server is shown by who adds it; what is shown twice is there once.
        showings.add(showing);
        servers().forEach(showing::show);
        return showing;
    }

    /** One catalog that this is shown in. */
    private final class Showing implements Registration {
        private final Catalog catalog;
        private final Map<String, String> labels;
        private final Set<ServerMetrics> known = new HashSet<>();
        private final List<Registration> shown = new ArrayList<>();
        private boolean isClosed;

        Showing(Catalog catalog, Map<String, String> labels) {
            this.catalog = catalog;
            this.labels = Map.copyOf(labels);
        }

        synchronized void show(ServerMetrics server) {
            if (!isClosed && known.add(server)) {
                server.showIn(catalog, labels, shown);
            }
        }

        /** Within a request, which is to know nothing of it. */
        void showLater(ServerMetrics server) {
            try {
                show(server);
            } catch (IllegalArgumentException e) {
                // The name has become something else's meanwhile: this server is measured, and not shown there.
            }
        }

        synchronized void showPools() {
            Description open = Description.of("http.client.open_connections", "{connection}", "Connections of the pool.");
            Description idle = open.with("http.connection.state", "idle").with(labels);
            Description max = Description.of("http.client.connection.max", "{connection}", "The limit of the pool.");
            shown.add(catalog.upDown(idle, () -> sum(PoolStats::getAvailable)));
            shown.add(catalog.upDown(max.with(labels), () -> sum(PoolStats::getMax)));
        }

        @Override
        public synchronized void close() {
            isClosed = true;
            showings.remove(this);
            shown.forEach(Registration::close);
            shown.clear();
        }
    }

    /** No number where there is no pool that can tell. */
    private double sum(ToIntFunction<PoolStats> part) {
        List<PoolStats> stats = pools();
        return stats.isEmpty() ? Double.NaN : stats.stream().mapToInt(part).sum();
    }

    ServerMetrics server(HttpHost host) {
        ServerMetrics known = servers.get(host);
        return known != null ? known : add(host);
    }

    private ServerMetrics add(HttpHost host) {
        if (servers.size() >= SERVERS_MAX) {
            if (!isOtherUsed) {
                isOtherUsed = true;
                showings.forEach(showing -> showing.showLater(other));
            }
            return other;
        }
        ServerMetrics added = new ServerMetrics(host.getHostName(), host.getPort());
        ServerMetrics known = servers.putIfAbsent(host, added);
        if (known != null) {
            return known;
        }
        showings.forEach(showing -> showing.showLater(added));
        return added;
    }

    /** A manager that two clients share is counted once. */
    @SuppressWarnings("unchecked")
    private void watch(Object manager) {
        pools.removeIf(known -> known.refersTo(null));
        if (manager instanceof ConnPoolControl<?>) {
            // By what the manager is: those of connections are by route.
            ConnPoolControl<HttpRoute> pool = (ConnPoolControl<HttpRoute>) manager;
            if (pools.stream().noneMatch(known -> known.refersTo(pool))) {
                pools.add(new WeakReference<>(pool));
            }
        }
    }
}
