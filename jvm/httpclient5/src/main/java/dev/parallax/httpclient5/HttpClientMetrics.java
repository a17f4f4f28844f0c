package dev.parallax.httpclient5;

import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.hc.client5.http.HttpRoute;
import org.apache.hc.client5.http.impl.async.HttpAsyncClientBuilder;
import org.apache.hc.client5.http.impl.classic.HttpClientBuilder;
import org.apache.hc.client5.http.ssl.TlsSocketStrategy;
import org.apache.hc.core5.http.HttpHost;
import org.apache.hc.core5.http.nio.ssl.TlsStrategy;
import org.apache.hc.core5.pool.ConnPoolControl;
import org.apache.hc.core5.pool.PoolStats;

/**
 * What clients of Apache HttpClient 5 wait for, apart from what servers take.
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
 * asks the pool for its statistics, which takes the pool's lock and walks all that wait; {@link #pools()} does, when read.
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

    /** Of no client yet; may be installed in several, which are added up. */
    public HttpClientMetrics() {}

    /**
     * Measures what the builder is going to build. Call it after the connection manager is set, or its pool is not among
     * {@link #pools()}; and after other interceptors were put first, or they are not within {@link ServerMetrics#calls()}.
     *
     * @param builder as the application uses it
     * @return the same
     */
    public HttpClientBuilder install(HttpClientBuilder builder) {
        watch(builder.getConnManager());
        return builder.addExecInterceptorFirst(HANDLER, new MeasuredChain(this));
    }

    /**
     * Measures what the builder is going to build: as for a classic client.
     *
     * @param builder as the application uses it
     * @return the same
     */
    public HttpAsyncClientBuilder install(HttpAsyncClientBuilder builder) {
        watch(builder.getConnManager());
        return builder.addExecInterceptorFirst(HANDLER, new MeasuredAsyncChain(this));
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

    ServerMetrics server(HttpHost host) {
        ServerMetrics known = servers.get(host);
        return known != null ? known : add(host);
    }

    private ServerMetrics add(HttpHost host) {
        if (servers.size() >= SERVERS_MAX) {
            return other;
        }
        return servers.computeIfAbsent(host, added -> new ServerMetrics(added.getHostName(), added.getPort()));
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
