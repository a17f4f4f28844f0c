package dev.parallax.vertx.metrics;

import dev.parallax.vertx.Client;
import dev.parallax.vertx.Label;
import dev.parallax.vertx.SeriesOptions;
import io.vertx.core.http.HttpClientOptions;
import io.vertx.core.net.SocketAddress;
import io.vertx.core.spi.metrics.ClientMetrics;
import io.vertx.core.spi.metrics.HttpClientMetrics;
import io.vertx.core.spi.metrics.PoolMetrics;
import java.util.Map;
import java.util.Set;

/** The metrics of one Vert.x instance of version 4.5. */
final class MeasuredVertx extends OptionsVertx {
    static final Set<Label> DEFAULT_LABELS = Label.defaultsOf45();

    MeasuredVertx(SeriesOptions options) {
        super(options);
    }

    @Override
    Map<Label, String> clientLabels(String name, String address) {
        return Map.of(Label.LOCAL, address == null ? "?" : address);
    }

    @Override
    public HttpClientMetrics<?, ?, ?, ?> createHttpClientMetrics(HttpClientOptions client) {
        Map<Label, String> fixed = clientLabels(client.getMetricsName(), client.getLocalAddress());
        return options.isEnabled("http.client") ? new MeasuredHttpClient(options, fixed) : null;
    }

    @Override
    public PoolMetrics<?> createPoolMetrics(String type, String name, int size) {
        Map<Label, String> labels = Map.of(Label.POOL_TYPE, type, Label.POOL_NAME, name == null ? "" : name);
        return options.isEnabled("pool") ? new MeasuredPool(pools.pool(labels, false, size)) : null;
    }

    @Override
    public ClientMetrics<?, ?, ?, ?> createClientMetrics(SocketAddress remote, String type, String namespace) {
        Map<Label, String> labels = Map.of(
                Label.REMOTE, remote == null ? "" : remote.toString(),
                Label.NAMESPACE, namespace == null ? "" : namespace);
        return options.isEnabled(type)
                ? new MeasuredClient(new Client(options, type, labels), new Client.Queue(options, type, labels))
                : null;
    }
}
