package dev.parallax.vertx.metrics;

import dev.parallax.vertx.MeasuredSockets;
import dev.parallax.vertx.Sockets;
import io.vertx.core.spi.metrics.TCPMetrics;

/** TCP connections of a server or client. */
final class MeasuredTcp extends MeasuredSockets implements TCPMetrics<Sockets.Socket> {
    MeasuredTcp(Sockets sockets) {
        super(sockets);
    }
}
