package dev.parallax.vertx.metrics;

import dev.parallax.vertx.Client;
import io.vertx.core.spi.metrics.ClientMetrics;

/** Requests of a client to one server. */
final class MeasuredClient extends ClientRequests implements ClientMetrics<Long, Object, Object> {
    MeasuredClient(Client client) {
        super(client);
    }
}
