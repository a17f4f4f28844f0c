package dev.parallax.vertx.metrics;

import dev.parallax.recorder.UpDownCounter;
import dev.parallax.vertx.Addresses;
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
import java.util.EnumMap;
import java.util.Map;

/** Requests of an HTTP client by server; its connections are distinguished from them. */
record MeasuredHttpClient(SeriesOptions options, Map<Label, String> fixed, Sockets webSockets)
        implements HttpClientMetrics<Exchange, UpDownCounter> {
    @Override
    public ClientMetrics<Exchange, HttpRequest, HttpResponse> createEndpointMetrics(SocketAddress remote, int size) {
        Map<Label, String> labels = new EnumMap<>(Label.class);
        labels.putAll(fixed);
        labels.put(Label.REMOTE, Addresses.text(remote, null));
        return new Endpoint(Exchanges.ofClient(options, labels));
    }

    @Override
    public UpDownCounter connected(HttpRequest request) {
        return webSockets.openWebSocket(webSockets.wantsRemote() ? Addresses.text(request.remoteAddress(), null) : null);
    }

    @Override
    public void disconnected(UpDownCounter open) {
        open.decrement();
    }

    /** One server. */
    private record Endpoint(Exchanges exchanges) implements ClientMetrics<Exchange, HttpRequest, HttpResponse> {
        @Override
        public Exchange init() {
            return exchanges.prepare();
        }

        @Override
        public void requestBegin(Exchange exchange, String uri, HttpRequest request) {
            String version = exchanges.wants(Label.VERSION) ? Texts.text(request.version()) : null;
            exchanges.begin(exchange, null, exchanges.wantsUri() ? request.uri() : null, request.method().name(), version);
        }

        @Override
        public void requestEnd(Exchange exchange, long bytes) {
            exchanges.requestEnd(exchange, bytes);
        }

        @Override
        public void requestReset(Exchange exchange) {
            exchanges.reset(exchange);
        }

        @Override
        public void responseBegin(Exchange exchange, HttpResponse response) {
            exchange.setCode(response.statusCode());
        }

        @Override
        public void responseEnd(Exchange exchange, long bytes) {
            exchanges.responseEnd(exchange, exchange.code(), bytes);
        }
    }
}
