package dev.parallax.vertx.metrics;

import dev.parallax.recorder.UpDownCounter;
import dev.parallax.vertx.Client;
import dev.parallax.vertx.Exchange;
import dev.parallax.vertx.Exchanges;
import dev.parallax.vertx.Label;
import dev.parallax.vertx.SeriesOptions;
import dev.parallax.vertx.Sockets;
import io.vertx.core.net.SocketAddress;
import io.vertx.core.spi.metrics.ClientMetrics;
import io.vertx.core.spi.metrics.HttpClientMetrics;
import io.vertx.core.spi.observability.HttpRequest;
import io.vertx.core.spi.observability.HttpResponse;
import java.util.Map;

/** Requests of an HTTP client by server, the queue before them, and the client's connections. */
final class MeasuredHttpClient extends HttpClientSockets
        implements HttpClientMetrics<Exchange, UpDownCounter, Sockets.Socket, Long> {
    MeasuredHttpClient(SeriesOptions options, Map<Label, String> fixed) {
        super(options, fixed);
    }

    @Override
    public ClientMetrics<Exchange, Long, HttpRequest, HttpResponse> createEndpointMetrics(SocketAddress remote, int size) {
        Map<Label, String> labels = endpointLabels(remote);
        return new Endpoint(Exchanges.ofClient(options, labels), new Client.Queue(options, "http.client", labels));
    }

    private static final class Endpoint extends EndpointRequests
            implements ClientMetrics<Exchange, Long, HttpRequest, HttpResponse> {
        private final Client.Queue queue;

        Endpoint(Exchanges exchanges, Client.Queue queue) {
            super(exchanges);
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
}
