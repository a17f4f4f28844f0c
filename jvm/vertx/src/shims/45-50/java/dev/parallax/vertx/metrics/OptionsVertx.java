package dev.parallax.vertx.metrics;

import dev.parallax.vertx.Addresses;
import dev.parallax.vertx.Label;
import dev.parallax.vertx.SeriesOptions;
import dev.parallax.vertx.Sockets;
import io.vertx.core.http.HttpServerOptions;
import io.vertx.core.net.NetClientOptions;
import io.vertx.core.net.NetServerOptions;
import io.vertx.core.net.SocketAddress;
import io.vertx.core.spi.metrics.HttpServerMetrics;
import io.vertx.core.spi.metrics.TCPMetrics;
import java.util.Map;

/** Adds servers and TCP clients for the versions that configure them by options: 4.5 and 5.0. */
abstract class OptionsVertx extends VersionedVertx {
    OptionsVertx(SeriesOptions options) {
        super(options);
    }

    /**
     * Returns the labels that all series of a client have.
     *
     * @param name the client's metrics name; may be null
     * @param address its local address; may be null
     */
    abstract Map<Label, String> clientLabels(String name, String address);

    @Override
    public final HttpServerMetrics<?, ?, ?> createHttpServerMetrics(HttpServerOptions server, SocketAddress local) {
        Map<Label, String> fixed = Map.of(Label.LOCAL, Addresses.text(local, null));
        return options.isEnabled("http.server") ? new MeasuredHttpServer(options, fixed) : null;
    }

    @Override
    public final TCPMetrics<?> createNetServerMetrics(NetServerOptions server, SocketAddress local) {
        Map<Label, String> fixed = Map.of(Label.LOCAL, Addresses.text(local, null));
        return options.isEnabled("net.server") ? new MeasuredTcp(new Sockets(options, "net.server", fixed)) : null;
    }

    @Override
    public final TCPMetrics<?> createNetClientMetrics(NetClientOptions client) {
        Map<Label, String> fixed = clientLabels(client.getMetricsName(), client.getLocalAddress());
        return options.isEnabled("net.client") ? new MeasuredTcp(new Sockets(options, "net.client", fixed)) : null;
    }
}
