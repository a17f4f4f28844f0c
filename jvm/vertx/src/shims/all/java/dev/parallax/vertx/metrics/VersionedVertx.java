package dev.parallax.vertx.metrics;

import dev.parallax.vertx.Inlining;
import dev.parallax.vertx.MeasuredDatagrams;
import dev.parallax.vertx.Pool;
import dev.parallax.vertx.SeriesOptions;
import io.vertx.core.datagram.DatagramSocketOptions;
import io.vertx.core.net.SocketAddress;
import io.vertx.core.spi.metrics.DatagramSocketMetrics;
import io.vertx.core.spi.metrics.EventBusMetrics;
import io.vertx.core.spi.metrics.VertxMetrics;
import io.vertx.core.spi.observability.HttpRequest;
import io.vertx.core.spi.observability.HttpResponse;

/** The metrics of one Vert.x instance that are the same in all versions; {@code MeasuredVertx} adds the others. */
abstract class VersionedVertx implements VertxMetrics {
    final SeriesOptions options;
    final Pool.Pools pools;

    VersionedVertx(SeriesOptions options) {
        Inlining.allow(SocketAddress.class, HttpRequest.class, HttpResponse.class);
        this.options = options;
        pools = new Pool.Pools(options);
    }

    @Override
    public final boolean isMetricsEnabled() {
        return true;
    }

    @Override
    public final EventBusMetrics<?> createEventBusMetrics() {
        return options.isEnabled("eventbus") ? new MeasuredEventBus(options) : null;
    }

    @Override
    public final DatagramSocketMetrics createDatagramSocketMetrics(DatagramSocketOptions socket) {
        return options.isEnabled("datagram") ? new MeasuredDatagrams(options) : null;
    }
}
