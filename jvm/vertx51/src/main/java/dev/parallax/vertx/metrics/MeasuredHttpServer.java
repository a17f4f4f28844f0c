package dev.parallax.vertx.metrics;

import dev.parallax.recorder.UpDownCounter;
import dev.parallax.vertx.Exchange;
import dev.parallax.vertx.Exchanges;
import dev.parallax.vertx.Label;
import dev.parallax.vertx.Sockets;
import io.vertx.core.http.HttpMethod;
import io.vertx.core.http.HttpVersion;
import io.vertx.core.net.SocketAddress;
import io.vertx.core.spi.metrics.HttpServerMetrics;
import io.vertx.core.spi.observability.HttpRequest;
import io.vertx.core.spi.observability.HttpResponse;

/**
 * Requests to an HTTP server and its WebSockets; its connections are measured separately. Requests over HTTP/3 have
 * another local address, and use the same exchanges if the address is not a label.
 */
record MeasuredHttpServer(Exchanges tcp, Exchanges udp, Sockets webSockets)
        implements HttpServerMetrics<Exchange, UpDownCounter> {
    @Override
    public Exchange requestBegin(SocketAddress remote, HttpRequest request) {
        Exchanges exchanges = udp != tcp && request.version() == HttpVersion.HTTP_3 ? udp : tcp;
        return exchanges.begin(
                exchanges.wants(Label.REMOTE) ? Texts.named(remote) : null,
                exchanges.wantsUri() ? request.uri() : null,
                request.method().name(),
                exchanges.wants(Label.VERSION) ? Texts.text(request.version()) : null);
    }

    @Override
    public void requestRouted(Exchange exchange, String route) {
        exchange.addRoute(route);
    }

    @Override
    public void requestEnd(Exchange exchange, HttpRequest request, long bytes) {
        of(exchange).requestEnd(exchange, bytes);
    }

    @Override
    public void requestReset(Exchange exchange) {
        of(exchange).reset(exchange);
    }

    @Override
    public void requestUpgraded(Exchange exchange) {
        of(exchange).detach(exchange);
    }

    @Override
    public Exchange responsePushed(SocketAddress remote, HttpMethod method, String uri, HttpResponse response) {
        return tcp.push(tcp.wants(Label.REMOTE) ? Texts.named(remote) : null, uri, method.name(), null);
    }

    @Override
    public void responseEnd(Exchange exchange, HttpResponse response, long bytes) {
        of(exchange).responseEnd(exchange, response.statusCode(), bytes);
    }

    /** An exchange that is over has no owner any more: any is right for what is reported about it too late. */
    private Exchanges of(Exchange exchange) {
        Exchanges its = exchange.exchanges();
        return its == null ? tcp : its;
    }

    @Override
    public UpDownCounter connected(HttpRequest request) {
        return webSockets.openWebSocket(webSockets.wantsRemote() ? Texts.named(request.remoteAddress()) : null);
    }

    @Override
    public void disconnected(UpDownCounter open) {
        open.decrement();
    }
}
