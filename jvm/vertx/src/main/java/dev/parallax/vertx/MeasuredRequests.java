package dev.parallax.vertx;

import dev.parallax.recorder.UpDownCounter;
import io.vertx.core.http.ServerWebSocket;
import io.vertx.core.spi.observability.HttpRequest;
import io.vertx.core.spi.observability.HttpResponse;
import java.util.Map;

/**
 * Requests to an HTTP server, and its connections, as Vert.x tells of both together up to 5.0. A version's own class adds how
 * they begin.
 */
public abstract class MeasuredRequests extends MeasuredSockets {
    private final Exchanges exchanges;

    /**
     * Of one server.
     *
     * @param options as of all
     * @param fixed labels that are the same for all; those that are off are left out
     */
    protected MeasuredRequests(SeriesOptions options, Map<Label, String> fixed) {
        super(new Sockets(options, "http.server", fixed));
        exchanges = Exchanges.ofServer(options, fixed);
    }

    /**
     * Whether the URI of a request is looked at.
     *
     * @return where it is not, it need not be built
     */
    protected boolean wantsUri() {
        return exchanges.wantsUri();
    }

    /**
     * A request begins.
     *
     * @param socket on which; may be null
     * @param uri as the request has it; may be null where it is not wanted
     * @param method as the request has it
     * @return to be ended
     */
    protected Exchange begin(Sockets.Socket socket, String uri, String method) {
        return exchanges.begin(remote(socket), uri, method, null);
    }

    /**
     * A response that nobody asked for begins.
     *
     * @param socket on which; may be null
     * @param uri that it would be the answer to
     * @param method that it would be the answer to
     * @return of which only the response is to be ended
     */
    protected Exchange push(Sockets.Socket socket, String uri, String method) {
        return exchanges.push(remote(socket), uri, method, null);
    }

    /**
     * A router has found a route, or one within another.
     *
     * @param exchange of the request
     * @param route null is none
     */
    public void requestRouted(Exchange exchange, String route) {
        exchange.routed(route);
    }

    /**
     * The request has been read.
     *
     * @param exchange of it
     * @param request is not looked at
     * @param bytes of its body
     */
    public void requestEnd(Exchange exchange, HttpRequest request, long bytes) {
        exchanges.requestEnd(exchange, bytes);
    }

    /**
     * It was given up.
     *
     * @param exchange of it
     */
    public void requestReset(Exchange exchange) {
        exchanges.reset(exchange);
    }

    /**
     * The response has been written.
     *
     * @param exchange of it
     * @param response has the status
     * @param bytes of its body
     */
    public void responseEnd(Exchange exchange, HttpResponse response, long bytes) {
        exchanges.responseEnd(exchange, response.statusCode(), bytes);
    }

    /**
     * A web socket was opened.
     *
     * @param socket on which; may be null
     * @param exchange is not looked at
     * @param webSocket is not looked at
     * @return to be told that it is closed
     */
    public UpDownCounter connected(Sockets.Socket socket, Exchange exchange, ServerWebSocket webSocket) {
        return sockets.webSocket(remote(socket));
    }

    /**
     * A web socket is closed.
     *
     * @param open that {@link #connected(Sockets.Socket, Exchange, ServerWebSocket)} returned
     */
    public void disconnected(UpDownCounter open) {
        open.decrement();
    }
}
