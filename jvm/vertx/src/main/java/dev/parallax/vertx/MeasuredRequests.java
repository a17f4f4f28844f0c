package dev.parallax.vertx;

import dev.parallax.recorder.UpDownCounter;
import io.vertx.core.http.ServerWebSocket;
import io.vertx.core.spi.observability.HttpRequest;
import io.vertx.core.spi.observability.HttpResponse;
import java.util.Map;

/**
 * Requests to an HTTP server and its connections, which Vert.x reports together up to 5.0. A version's class adds the
 * begin of a request.
 */
public abstract class MeasuredRequests extends MeasuredSockets {
    private final Exchanges exchanges;

    /**
     * Creates the metrics of one server.
     *
     * @param options what is measured
     * @param fixed labels with the same value for all requests; disabled ones are left out
     */
    protected MeasuredRequests(SeriesOptions options, Map<Label, String> fixed) {
        super(new Sockets(options, "http.server", fixed));
        exchanges = Exchanges.ofServer(options, fixed);
    }

    /**
     * Whether the URI of a request is needed.
     *
     * @return if false, it need not be built
     */
    protected boolean wantsUri() {
        return exchanges.wantsUri();
    }

    /**
     * A request begins.
     *
     * @param socket it came on; may be null
     * @param uri of the request; may be null if not needed
     * @param method of the request
     * @return the exchange to end
     */
    protected Exchange begin(Sockets.Socket socket, String uri, String method) {
        return exchanges.begin(remote(socket), uri, method, null);
    }

    /**
     * A pushed response begins.
     *
     * @param socket it is sent on; may be null
     * @param uri of the request it responds to
     * @param method of the request it responds to
     * @return an exchange of which only the response must be ended
     */
    protected Exchange push(Sockets.Socket socket, String uri, String method) {
        return exchanges.push(remote(socket), uri, method, null);
    }

    /**
     * A router matched a route, or a nested one.
     *
     * @param exchange of the request
     * @param route null for none
     */
    public void requestRouted(Exchange exchange, String route) {
        exchange.addRoute(route);
    }

    /**
     * The request has been read.
     *
     * @param exchange of the request
     * @param request ignored
     * @param bytes size of its body
     */
    public void requestEnd(Exchange exchange, HttpRequest request, long bytes) {
        exchanges.requestEnd(exchange, bytes);
    }

    /**
     * The request was abandoned.
     *
     * @param exchange of the request
     */
    public void requestReset(Exchange exchange) {
        exchanges.reset(exchange);
    }

    /**
     * The response has been written.
     *
     * @param exchange of the request
     * @param response has the status
     * @param bytes size of its body
     */
    public void responseEnd(Exchange exchange, HttpResponse response, long bytes) {
        exchanges.responseEnd(exchange, response.statusCode(), bytes);
    }

    /**
     * A WebSocket was opened.
     *
     * @param socket it was opened on; may be null
     * @param exchange ignored
     * @param webSocket ignored
     * @return to be decremented when it is closed
     */
    public UpDownCounter connected(Sockets.Socket socket, Exchange exchange, ServerWebSocket webSocket) {
        return sockets.openWebSocket(remote(socket));
    }

    /**
     * A WebSocket was closed.
     *
     * @param open returned by {@link #connected(Sockets.Socket, Exchange, ServerWebSocket)}
     */
    public void disconnected(UpDownCounter open) {
        open.decrement();
    }
}
