package dev.parallax.vertx.metrics;

import dev.parallax.recorder.UpDownCounter;
import dev.parallax.vertx.Exchange;
import dev.parallax.vertx.Label;
import dev.parallax.vertx.MeasuredRequests;
import dev.parallax.vertx.SeriesOptions;
import dev.parallax.vertx.Sockets;
import io.vertx.core.http.HttpMethod;
import io.vertx.core.spi.metrics.HttpServerMetrics;
import io.vertx.core.spi.observability.HttpRequest;
import io.vertx.core.spi.observability.HttpResponse;
import java.util.Map;

/** Requests to an HTTP server, and its connections. */
final class MeasuredHttpServer extends MeasuredRequests implements HttpServerMetrics<Exchange, UpDownCounter, Sockets.Socket> {
    MeasuredHttpServer(SeriesOptions options, Map<Label, String> fixed) {
        super(options, fixed);
    }

    @Override
    public Exchange requestBegin(Sockets.Socket socket, HttpRequest request) {
        return begin(socket, wantsUri() ? request.uri() : null, request.method().name());
    }

    @Override
    public Exchange responsePushed(Sockets.Socket socket, HttpMethod method, String uri, HttpResponse response) {
        return push(socket, uri, method.name());
    }
}
