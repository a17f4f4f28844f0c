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
 * Measures Apache HttpClient 5.6 and later: the wait for a pooled connection apart from the time servers take.
 *
 * <pre>{@code
 * HttpClientMetrics metrics = new HttpClientMetrics();
 * CloseableHttpClient client = metrics.install(HttpClients.custom()).build();
 * }</pre>
 *
 * <p>Hooks in between the client's execution chain and its pool, so it works with any connection manager: the default,
 * a wrapped or a custom one. It throws nothing into the application and holds no connection. Safe for any number of
 * threads.
 *
 * <p>Cost per request: about eight clock reads and a few hundred bytes of short-lived objects; no lock. Pool
 * statistics, which take the pool's lock and walk its waiters, are read only by {@link #pools()} and by a catalog that
 * this is bound to.
 *
 * <p>Names follow OpenTelemetry's semantic conventions for HTTP clients. Where only databases have a convention ({@code
 * db.client.connection.wait_time}), {@code http} replaces {@code db}.
 */
public final class HttpClientMetrics {
    /** A typical client calls tens of servers; one that follows links would add servers without end. */
    static final int SERVERS_MAX = 200;

    private static final String HANDLER = "parallax";

    private final ConcurrentMap<HttpHost, ServerMetrics> servers = new ConcurrentHashMap<>();
    private final ServerMetrics other = new ServerMetrics("_OTHER", -1);
    /** Weak references, so that an application that keeps creating clients does not keep their pools alive. */
    private final List<WeakReference<ConnPoolControl<HttpRoute>>> pools = new CopyOnWriteArrayList<>();

    private final List<Showing> showings = new CopyOnWriteArrayList<>();
    private volatile boolean isOtherUsed;

    /**
     * Measures no client until installed in one. May be installed in several clients, whose figures are then added up;
     * installing twice in one client counts once.
     */
    public HttpClientMetrics() {}

    /**
     * Measures the client that the builder builds. Call it after setting the connection manager, otherwise its pool is
     * missing from {@link #pools()}, and after adding other interceptors first, otherwise their time is missing from
     * {@link ServerMetrics#calls()}.
     *
     * @param builder of the client to measure
     * @return the same builder
     * @throws UnsupportedOperationException if HttpClient is older than 5.6
     */
    public HttpClientBuilder install(HttpClientBuilder builder) {
        MinimumVersion.check();
        watch(builder.getConnManager());
        return builder.addExecInterceptorFirst(HANDLER, new MeasuredChain(this));
    }

    /**
     * Measures the asynchronous client that the builder builds; see {@link #install(HttpClientBuilder)}.
     *
     * @param builder of the client to measure
     * @return the same builder
     * @throws UnsupportedOperationException if HttpClient is older than 5.6
     */
    public HttpAsyncClientBuilder install(HttpAsyncClientBuilder builder) {
        MinimumVersion.check();
        watch(builder.getConnManager());
        return builder.addExecInterceptorFirst(HANDLER, new MeasuredAsyncChain(this));
    }

    /**
     * Measures a client whose builder is out of reach, by changing a private field of it. Call this before the client
     * is used.
     *
     * @param client built by HttpClient's own builders; on Java 26 and later the JVM warns unless started with {@code
     *     --enable-final-field-mutation=ALL-UNNAMED}
     * @return whether the client is measured; false if its class or internals are not as expected
     * @throws UnsupportedOperationException if HttpClient is older than 5.6
     */
    public boolean install(CloseableHttpClient client) {
        return install(client, new MeasuredChain(this), ExecChainHandler.class);
    }

    /**
     * Measures an asynchronous client whose builder is out of reach; see {@link #install(CloseableHttpClient)}.
     *
     * @param client built by HttpClient's own builders
     * @return whether the client is measured
     * @throws UnsupportedOperationException if HttpClient is older than 5.6
     */
    public boolean install(CloseableHttpAsyncClient client) {
        return install(client, new MeasuredAsyncChain(this), AsyncExecChainHandler.class);
    }

    private <S> boolean install(Object client, S step, Class<S> type) {
        MinimumVersion.check();
        BuiltClient built = new BuiltClient(client);
        boolean isMeasured = built.prepend(step, type);
        if (isMeasured) {
            watch(built.manager());
        }
        return isMeasured;
    }

    /**
     * Times TLS handshakes apart from connects. A connection manager does both in one step, so the TLS strategy has to
     * be wrapped; pass the result to the builder of the manager.
     *
     * @param strategy to wrap, for example {@code DefaultClientTlsStrategy.createDefault()}
     * @return a strategy that behaves the same
     */
    public TlsSocketStrategy timeHandshakes(TlsSocketStrategy strategy) {
        return StampedTls.of(strategy);
    }

    /**
     * Times TLS handshakes apart from connects, for asynchronous clients.
     *
     * @param strategy to wrap, for example {@code DefaultClientTlsStrategy.createDefault()}
     * @return a strategy that behaves the same
     */
    public TlsStrategy timeHandshakes(TlsStrategy strategy) {
        return StampedTls.of(strategy);
    }

    /**
     * The servers called so far.
     *
     * @return a copy; once the limit of servers is reached, the last element represents all servers beyond it
     */
    public List<ServerMetrics> servers() {
        List<ServerMetrics> all = new ArrayList<>(servers.values());
        if (all.size() >= SERVERS_MAX) {
            all.add(other);
        }
        return all;
    }

    /**
     * {@code http.client.open_connections} and their limit, for connection managers that were set in the builder and
     * have statistics. A manager that the client creates itself is not accessible; use {@link ServerMetrics#active()}
     * then.
     *
     * <p>Takes each pool's lock: call it per scrape, not per request.
     *
     * @return leased, pending, available and maximum connections, one element per manager still in use
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
     * Registers all series in a catalog, including those of servers called later, under the names given with each
     * recorder and with the labels {@code server.address} and {@code server.port}. Adds {@code
     * http.client.open_connections} with {@code http.connection.state=idle} and {@code http.client.connection.max} for
     * managers with statistics. Bind once per catalog: a second binding counts everything twice.
     *
     * @param catalog to register in
     * @param labels that tell this client from others in the same catalog; clients with equal labels are added up
     * @return closing it removes the series
     */
    public Registration bindTo(Catalog catalog, Map<String, String> labels) {
        // Names that the catalog already uses for something else are refused here, not when a request meets a new
        // server.
        try (Showing trial = new Showing(catalog, labels)) {
            trial.showPools();
            // A trial with an empty server, since totals of a closed registration may stay in the catalog.
            trial.show(new ServerMetrics(other.address(), other.port()));
        }
        Showing showing = new Showing(catalog, labels);
        showing.showPools();
        // From here on a thread that adds a server also registers it; registering the same server twice has no effect.
        showings.add(showing);
        servers().forEach(showing::show);
        return showing;
    }

    /** The series in one catalog. */
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
                server.bindTo(catalog, labels, shown);
            }
        }

        /** Runs inside a request, which must not fail because of it. */
        void showLater(ServerMetrics server) {
            try {
                show(server);
            } catch (IllegalArgumentException e) {
                // Something else has taken the name in the meantime: this server is measured but not shown in this catalog.
            }
        }

        synchronized void showPools() {
            Description open = Description.of("http.client.open_connections", "{connection}", "Connections in the pool.");
            Description idle = open.with("http.connection.state", "idle").with(labels);
            Description max = Description.of("http.client.connection.max", "{connection}", "Maximum number of connections in the pool.");
            shown.add(catalog.upDownCounter(idle, () -> sum(PoolStats::getAvailable)));
            shown.add(catalog.upDownCounter(max.with(labels), () -> sum(PoolStats::getMax)));
        }

        @Override
        public synchronized void close() {
            isClosed = true;
            showings.remove(this);
            shown.forEach(Registration::close);
            shown.clear();
        }
    }

    /** NaN if no pool has statistics. */
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

    /** A manager shared by two clients is counted once. */
    @SuppressWarnings("unchecked")
    private void watch(Object manager) {
        pools.removeIf(known -> known.refersTo(null));
        if (manager instanceof ConnPoolControl<?>) {
            // Safe: pools of connection managers are keyed by route.
            ConnPoolControl<HttpRoute> pool = (ConnPoolControl<HttpRoute>) manager;
            if (pools.stream().noneMatch(known -> known.refersTo(pool))) {
                pools.add(new WeakReference<>(pool));
            }
        }
    }
}
