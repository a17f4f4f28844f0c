package dev.parallax.vertx50;

import dev.parallax.vertx.Addresses;
import dev.parallax.vertx.Client;
import dev.parallax.vertx.Inlining;
import dev.parallax.vertx.Label;
import dev.parallax.vertx.MeasuredDatagrams;
import dev.parallax.vertx.Pool;
import dev.parallax.vertx.SeriesOptions;
import dev.parallax.vertx.Sockets;
import io.vertx.core.datagram.DatagramSocketOptions;
import io.vertx.core.http.HttpClientOptions;
import io.vertx.core.http.HttpServerOptions;
import io.vertx.core.net.NetClientOptions;
import io.vertx.core.net.NetServerOptions;
import io.vertx.core.net.SocketAddress;
import io.vertx.core.spi.metrics.ClientMetrics;
import io.vertx.core.spi.metrics.DatagramSocketMetrics;
import io.vertx.core.spi.metrics.EventBusMetrics;
import io.vertx.core.spi.metrics.HttpClientMetrics;
import io.vertx.core.spi.metrics.HttpServerMetrics;
import io.vertx.core.spi.metrics.PoolMetrics;
import io.vertx.core.spi.metrics.TCPMetrics;
import io.vertx.core.spi.metrics.VertxMetrics;
import io.vertx.core.spi.observability.HttpRequest;
import io.vertx.core.spi.observability.HttpResponse;
import java.util.Map;

/** All that one Vert.x has measured. */
final class MeasuredVertx implements VertxMetrics {
    private final SeriesOptions options;
    private final Pool.Pools pools;

    MeasuredVertx(SeriesOptions options) {
        Inlining.allow(SocketAddress.class, HttpRequest.class, HttpResponse.class);
        this.options = options;
        pools = new Pool.Pools(options);
    }

    @Override
    public boolean isMetricsEnabled() {
        return true;
    }

    @Override
    public EventBusMetrics<?> createEventBusMetrics() {
        return options.isEnabled("eventbus") ? new MeasuredEventBus(options) : null;
    }

    @Override
    public HttpServerMetrics<?, ?, ?> createHttpServerMetrics(HttpServerOptions server, SocketAddress local) {
        Map<Label, String> fixed = Map.of(Label.LOCAL, Addresses.text(local, null));
        return options.isEnabled("http.server") ? new MeasuredHttpServer(options, fixed) : null;
    }

    @Override
    public HttpClientMetrics<?, ?, ?> createHttpClientMetrics(HttpClientOptions client) {
        Map<Label, String> fixed = fixed(client.getMetricsName(), client.getLocalAddress());
        return options.isEnabled("http.client") ? new MeasuredHttpClient(options, fixed) : null;
    }

    @Override
    public TCPMetrics<?> createNetServerMetrics(NetServerOptions server, SocketAddress local) {
        Map<Label, String> fixed = Map.of(Label.LOCAL, Addresses.text(local, null));
        return options.isEnabled("net.server") ? new MeasuredTcp(new Sockets(options, "net.server", fixed)) : null;
    }

    @Override
    public TCPMetrics<?> createNetClientMetrics(NetClientOptions client) {
        Map<Label, String> fixed = fixed(client.getMetricsName(), client.getLocalAddress());
        return options.isEnabled("net.client") ? new MeasuredTcp(new Sockets(options, "net.client", fixed)) : null;
    }

    private static Map<Label, String> fixed(String name, String address) {
        return Map.of(Label.CLIENT_NAME, name == null ? "?" : name, Label.LOCAL, address == null ? "?" : address);
    }

    @Override
    public DatagramSocketMetrics createDatagramSocketMetrics(DatagramSocketOptions socket) {
        return options.isEnabled("datagram") ? new MeasuredDatagrams(options) : null;
    }

    @Override
    public PoolMetrics<?, ?> createPoolMetrics(String type, String name, int size) {
        Map<Label, String> labels = Map.of(Label.POOL_TYPE, type, Label.POOL_NAME, name == null ? "" : name);
        return options.isEnabled("pool") ? new MeasuredPool(pools.pool(labels, type.equals("http"), size)) : null;
    }

    @Override
    public ClientMetrics<?, ?, ?> createClientMetrics(SocketAddress remote, String type, String namespace) {
        Map<Label, String> labels = Map.of(
                Label.REMOTE, Addresses.text(remote, null),
                Label.NAMESPACE, namespace == null ? "" : namespace);
        return options.isEnabled(type) ? new MeasuredClient(new Client(options, type, labels)) : null;
    }
}
