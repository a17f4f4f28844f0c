package dev.parallax.vertx45;

import dev.parallax.vertx.Client;
import io.vertx.core.spi.metrics.ClientMetrics;

/** A client of a database or the like, and one server. */
record MeasuredClient(Client client, Client.Queue queue) implements ClientMetrics<Long, Long, Object, Object> {
    @Override
    public Long enqueueRequest() {
        return queue.waits();
    }

    @Override
    public void dequeueRequest(Long sinceNs) {
        queue.waitsNoMore(sinceNs);
    }

    @Override
    public Long requestBegin(String uri, Object request) {
        return client.begin();
    }

    @Override
    public void requestReset(Long sinceNs) {
        if (sinceNs != null) {
            client.reset(sinceNs);
        }
    }

    @Override
    public void responseEnd(Long sinceNs) {
        if (sinceNs != null) {
            client.end(sinceNs);
        }
    }

    @Override
    public void responseEnd(Long sinceNs, long bytes) {
        responseEnd(sinceNs);
    }
}
