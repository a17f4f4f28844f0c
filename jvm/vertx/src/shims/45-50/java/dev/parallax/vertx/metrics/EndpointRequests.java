package dev.parallax.vertx.metrics;

import dev.parallax.vertx.Exchange;
import dev.parallax.vertx.Exchanges;
import io.vertx.core.spi.observability.HttpRequest;
import io.vertx.core.spi.observability.HttpResponse;

/** Requests of an HTTP client to one server. A version's class adds the SPI's type. */
abstract class EndpointRequests {
    private final Exchanges exchanges;

    EndpointRequests(Exchanges exchanges) {
        this.exchanges = exchanges;
    }

    public Exchange requestBegin(String uri, HttpRequest request) {
        return exchanges.begin(null, exchanges.wantsUri() ? request.uri() : null, request.method().name(), null);
    }

    public void requestEnd(Exchange exchange, long bytes) {
        if (exchange != null) {
            exchanges.requestEnd(exchange, bytes);
        }
    }

    public void requestReset(Exchange exchange) {
        if (exchange != null) {
            exchanges.reset(exchange);
        }
    }

    public void responseBegin(Exchange exchange, HttpResponse response) {
        if (exchange != null) {
            exchange.setCode(response.statusCode());
        }
    }

    public void responseEnd(Exchange exchange, long bytes) {
        if (exchange != null) {
            exchanges.responseEnd(exchange, exchange.code(), bytes);
        }
    }
}
