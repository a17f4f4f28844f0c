package dev.parallax.vertx50;

import dev.parallax.recorder.UpDownCounter;
import dev.parallax.vertx.Exchange;
import dev.parallax.vertx.Exchanges;
import dev.parallax.vertx.Label;
import dev.parallax.vertx.SeriesOptions;
import dev.parallax.vertx.Sockets;
import io.vertx.core.http.HttpMethod;
import io.vertx.core.http.ServerWebSocket;
import io.vertx.core.spi.metrics.HttpServerMetrics;
import io.vertx.core.spi.observability.HttpRequest;
import io.vertx.core.spi.observability.HttpResponse;
import java.util.Map;

/** Requests to an HTTP server, and its connections. */
final class MeasuredHttpServer extends MeasuredTcp implements HttpServerMetrics<Exchange, UpDownCounter, Sockets.Socket> {
    private final Exchanges exchanges;

    MeasuredHttpServer(SeriesOptions options, Map<Label, String> fixed) {
        super(new Sockets(options, "http.server", fixed));
        exchanges = Exchanges.ofServer(options, fixed);
    }

    @Override
    public Exchange requestBegin(Sockets.Socket socket, HttpRequest request) {
        return exchanges.begin(remote(socket), request.uri(), request.method().name(), null);
    }

    @Override
    public void requestRouted(Exchange exchange, String route) {
        exchange.routed(route);
    }

    @Override
    public void requestEnd(Exchange exchange, HttpRequest request, long bytes) {
        exchanges.requestEnd(exchange, bytes);
    }

    @Override
    public void requestReset(Exchange exchange) {
        exchanges.reset(exchange);
    }

    @Override
    public Exchange responsePushed(Sockets.Socket socket, HttpMethod method, String uri, HttpResponse response) {
        return exchanges.push(remote(socket), uri, method.name(), null);
    }

    @Override
    public void responseEnd(Exchange exchange, HttpResponse response, long bytes) {
        exchanges.responseEnd(exchange, response.statusCode(), bytes);
    }

    @Override
    public UpDownCounter connected(Sockets.Socket socket, Exchange exchange, ServerWebSocket webSocket) {
        return sockets.webSocket(remote(socket));
    }

    private static String remote(Sockets.Socket socket) {
        return socket == null ? null : socket.remote();
    }

    @Override
    public void disconnected(UpDownCounter webSockets) {
        webSockets.decrement();
    }
}
