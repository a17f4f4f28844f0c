package dev.parallax.vertx.metrics;

import dev.parallax.vertx.Client;
import io.vertx.core.spi.metrics.ClientMetrics;

/** A client of a database or the like, and one server. */
record MeasuredClient(Client client) implements ClientMetrics<MeasuredClient.Request, Object, Object> {
    /** One request; without a start before it has begun. */
    static final class Request {
        private Long sinceNs;
    }

    @Override
    public Request init() {
        return new Request();
    }

    @Override
    public void requestBegin(Request request, String uri, Object sent) {
        request.sinceNs = client.begin();
    }

    @Override
    public void requestReset(Request request) {
        if (request.sinceNs != null) {
            client.reset(request.sinceNs);
        }
    }

    @Override
    public void responseEnd(Request request) {
        if (request.sinceNs != null) {
            client.end(request.sinceNs);
        }
    }

    @Override
    public void responseEnd(Request request, long bytes) {
        responseEnd(request);
    }
}
