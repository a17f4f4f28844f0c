package dev.parallax.vertx50;

import dev.parallax.vertx.Client;
import io.vertx.core.spi.metrics.ClientMetrics;

/** A client of a database or the like, and one server. */
record MeasuredClient(Client client) implements ClientMetrics<Long, Object, Object> {
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
