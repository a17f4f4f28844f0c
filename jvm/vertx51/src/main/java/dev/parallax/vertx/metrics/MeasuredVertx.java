package dev.parallax.vertx.metrics;

import dev.parallax.vertx.Addresses;
import dev.parallax.vertx.Client;
import dev.parallax.vertx.Exchanges;
import dev.parallax.vertx.Label;
import dev.parallax.vertx.SeriesOptions;
import dev.parallax.vertx.Sockets;
import io.vertx.core.http.HttpClientConfig;
import io.vertx.core.http.HttpServerConfig;
import io.vertx.core.http.ObservabilityConfig;
import io.vertx.core.net.SocketAddress;
import io.vertx.core.net.TcpClientConfig;
import io.vertx.core.net.TcpServerConfig;
import io.vertx.core.spi.metrics.ClientMetrics;
import io.vertx.core.spi.metrics.HttpClientMetrics;
import io.vertx.core.spi.metrics.HttpServerMetrics;
import io.vertx.core.spi.metrics.PoolMetrics;
import io.vertx.core.spi.metrics.TransportMetrics;
import java.util.EnumMap;
import java.util.Map;
import java.util.Set;

/** The metrics of one Vert.x instance of version 5.1 or 5.2. */
final class MeasuredVertx extends VersionedVertx {
    static final Set<Label> DEFAULT_LABELS = Label.defaultsOf51();

    MeasuredVertx(SeriesOptions options) {
        super(options);
    }

    @Override
    public HttpServerMetrics<?, ?> createHttpServerMetrics(HttpServerConfig server, SocketAddress tcp, SocketAddress udp) {
        if (!options.isEnabled("http.server")) {
            return null;
        }
        ObservabilityConfig named = server.getObservabilityConfig();
        Map<Label, String> fixed = named(Label.SERVER_NAME, named == null ? null : named.getMetricsName());
        fixed.put(Label.LOCAL, Addresses.text(tcp, null));
        Exchanges exchanges = Exchanges.ofServer(options, fixed);
        Sockets webSockets = new Sockets(options, "http.server", fixed);
        if (udp == null || !options.labels().contains(Label.LOCAL)) {
            return new MeasuredHttpServer(exchanges, exchanges, webSockets);
        }
        fixed.put(Label.LOCAL, Addresses.text(udp, null));
        return new MeasuredHttpServer(exchanges, Exchanges.ofServer(options, fixed), webSockets);
    }

    @Override
    public HttpClientMetrics<?, ?> createHttpClientMetrics(HttpClientConfig client) {
        if (!options.isEnabled("http.client")) {
            return null;
        }
        ObservabilityConfig named = client.getObservabilityConfig();
        Map<Label, String> fixed = named(Label.CLIENT_NAME, named == null ? null : named.getMetricsName());
        TcpClientConfig transport = client.getTcpConfig();
        fixed.put(Label.LOCAL, host(transport == null ? null : transport.getLocalAddress()));
        return new MeasuredHttpClient(options, fixed, new Sockets(options, "http.client", fixed));
    }

    @Override
    public TransportMetrics<?> createTcpServerMetrics(TcpServerConfig server, String protocol, SocketAddress local) {
        String domain = "http".equals(protocol) ? "http.server" : "net.server";
        Map<Label, String> fixed = Map.of(Label.LOCAL, Addresses.text(local, null));
        return options.isEnabled(domain) ? new MeasuredTcp(new Sockets(options, domain, fixed)) : null;
    }

    @Override
    public TransportMetrics<?> createTcpClientMetrics(TcpClientConfig client, String protocol) {
        String domain = "http".equals(protocol) ? "http.client" : "net.client";
        Map<Label, String> fixed = named(Label.CLIENT_NAME, client.getMetricsName());
        fixed.put(Label.LOCAL, host(client.getLocalAddress()));
        return options.isEnabled(domain) ? new MeasuredTcp(new Sockets(options, domain, fixed)) : null;
    }

    private static String host(SocketAddress address) {
        String host = address == null ? null : address.host();
        return host == null ? "?" : host;
    }

    /** Returns a mutable map with the label, or without it if the name is null or blank. */
    private static Map<Label, String> named(Label label, String name) {
        Map<Label, String> named = new EnumMap<>(Label.class);
        if (name != null && !name.isBlank()) {
            named.put(label, name);
        }
        return named;
    }

    @Override
    public PoolMetrics<?, ?> createPoolMetrics(String type, String name, int size) {
        Map<Label, String> labels = Map.of(Label.POOL_TYPE, type, Label.POOL_NAME, name == null ? "" : name);
        return options.isEnabled("pool") ? new MeasuredPool(pools.pool(labels, type.equals("http"), size)) : null;
    }

    @Override
    public ClientMetrics<?, ?, ?> createClientMetrics(SocketAddress remote, String type, String namespace) {
        Map<Label, String> labels = named(Label.NAMESPACE, namespace);
        labels.put(Label.REMOTE, Addresses.text(remote, null));
        return options.isEnabled(type) ? new MeasuredClient(new Client(options, type, labels)) : null;
    }
}
