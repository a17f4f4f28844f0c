package dev.parallax.vertx50;

import dev.parallax.recorder.UpDownCounter;
import dev.parallax.vertx.Addresses;
import dev.parallax.vertx.Exchange;
import dev.parallax.vertx.Exchanges;
import dev.parallax.vertx.Label;
import dev.parallax.vertx.MeasuredSockets;
import dev.parallax.vertx.SeriesOptions;
import dev.parallax.vertx.Sockets;
import io.vertx.core.http.WebSocket;
import io.vertx.core.net.SocketAddress;
import io.vertx.core.spi.metrics.ClientMetrics;
import io.vertx.core.spi.metrics.HttpClientMetrics;
import io.vertx.core.spi.observability.HttpRequest;
import io.vertx.core.spi.observability.HttpResponse;
import java.util.EnumMap;
import java.util.Map;

/** Requests of an HTTP client by server, and its connections. */
final class MeasuredHttpClient extends MeasuredSockets implements HttpClientMetrics<Exchange, UpDownCounter, Sockets.Socket> {
    private final SeriesOptions options;
    private final Map<Label, String> fixed;

    MeasuredHttpClient(SeriesOptions options, Map<Label, String> fixed) {
        super(new Sockets(options, "http.client", fixed));
        this.options = options;
        this.fixed = fixed;
    }

    @Override
    public ClientMetrics<Exchange, HttpRequest, HttpResponse> createEndpointMetrics(SocketAddress remote, int size) {
        Map<Label, String> labels = new EnumMap<>(Label.class);
        labels.putAll(fixed);
        labels.put(Label.REMOTE, Addresses.text(remote, null));
        return new Endpoint(Exchanges.ofClient(options, labels));
    }

    @Override
    public UpDownCounter connected(WebSocket webSocket) {
        return sockets.webSocket(sockets.wantsRemote() ? Addresses.text(webSocket.remoteAddress(), null) : null);
    }

    @Override
    public void disconnected(UpDownCounter webSockets) {
        webSockets.decrement();
    }

    /** One server. */
    private record Endpoint(Exchanges exchanges) implements ClientMetrics<Exchange, HttpRequest, HttpResponse> {
        @Override
        public Exchange requestBegin(String uri, HttpRequest request) {
            return exchanges.begin(null, exchanges.wantsUri() ? request.uri() : null, request.method().name(), null);
        }

        @Override
        public void requestEnd(Exchange exchange, long bytes) {
            if (exchange != null) {
                exchanges.requestEnd(exchange, bytes);
            }
        }

        @Override
        public void requestReset(Exchange exchange) {
            if (exchange != null) {
                exchanges.reset(exchange);
            }
        }

        @Override
        public void responseBegin(Exchange exchange, HttpResponse response) {
            if (exchange != null) {
                exchange.setCode(response.statusCode());
            }
        }

        @Override
        public void responseEnd(Exchange exchange, long bytes) {
            if (exchange != null) {
                exchanges.responseEnd(exchange, exchange.code(), bytes);
            }
        }
    }
}
