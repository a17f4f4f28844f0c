package dev.parallax.vertx.metrics;

import dev.parallax.recorder.UpDownCounter;
import dev.parallax.vertx.Addresses;
import dev.parallax.vertx.Label;
import dev.parallax.vertx.MeasuredSockets;
import dev.parallax.vertx.SeriesOptions;
import dev.parallax.vertx.Sockets;
import io.vertx.core.http.WebSocket;
import io.vertx.core.net.SocketAddress;
import java.util.EnumMap;
import java.util.Map;

/** Connections of an HTTP client. A version's class adds the SPI's type and the endpoints. */
abstract class HttpClientSockets extends MeasuredSockets {
    final SeriesOptions options;
    private final Map<Label, String> fixed;

    HttpClientSockets(SeriesOptions options, Map<Label, String> fixed) {
        super(new Sockets(options, "http.client", fixed));
        this.options = options;
        this.fixed = fixed;
    }

    /** Returns the labels of one server's series. */
    final Map<Label, String> endpointLabels(SocketAddress remote) {
        Map<Label, String> labels = new EnumMap<>(Label.class);
        labels.putAll(fixed);
        labels.put(Label.REMOTE, Addresses.text(remote, null));
        return labels;
    }

    public UpDownCounter connected(WebSocket webSocket) {
        return sockets.openWebSocket(sockets.wantsRemote() ? Addresses.text(webSocket.remoteAddress(), null) : null);
    }

    public void disconnected(UpDownCounter webSockets) {
        webSockets.decrement();
    }
}
