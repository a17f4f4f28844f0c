package dev.parallax.vertx.metrics;

import dev.parallax.vertx.Client;
import io.vertx.core.spi.metrics.ClientMetrics;

/** Requests of a client to one server, and the queue before them. */
final class MeasuredClient extends ClientRequests implements ClientMetrics<Long, Long, Object, Object> {
    private final Client.Queue queue;

    MeasuredClient(Client client, Client.Queue queue) {
        super(client);
        this.queue = queue;
    }

    @Override
    public Long enqueueRequest() {
        return queue.enter();
    }

    @Override
    public void dequeueRequest(Long sinceNs) {
        queue.leave(sinceNs);
    }
}
