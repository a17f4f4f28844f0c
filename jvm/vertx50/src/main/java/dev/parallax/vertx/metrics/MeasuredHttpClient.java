package dev.parallax.vertx.metrics;

import dev.parallax.recorder.UpDownCounter;
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

/** Requests of an HTTP client by server, and the client's connections. */
final class MeasuredHttpClient extends HttpClientSockets
        implements HttpClientMetrics<Exchange, UpDownCounter, Sockets.Socket> {
    MeasuredHttpClient(SeriesOptions options, Map<Label, String> fixed) {
        super(options, fixed);
    }

    @Override
    public ClientMetrics<Exchange, HttpRequest, HttpResponse> createEndpointMetrics(SocketAddress remote, int size) {
        return new Endpoint(Exchanges.ofClient(options, endpointLabels(remote)));
    }

    private static final class Endpoint extends EndpointRequests
            implements ClientMetrics<Exchange, HttpRequest, HttpResponse> {
        Endpoint(Exchanges exchanges) {
            super(exchanges);
        }
    }
}
