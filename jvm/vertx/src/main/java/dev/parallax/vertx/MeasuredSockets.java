package dev.parallax.vertx;

import io.vertx.core.net.SocketAddress;
import io.vertx.core.spi.metrics.NetworkMetrics;
import io.vertx.core.spi.observability.HttpRequest;
import io.vertx.core.spi.observability.HttpResponse;

/**
 * Connections of a server or client, including those of HTTP; a version's class adds the SPI's type. Events of a
 * connection whose opening was not reported are ignored.
 */
public abstract class MeasuredSockets implements NetworkMetrics<Sockets.Socket> {
    static {
        Inlining.allow(SocketAddress.class, HttpRequest.class, HttpResponse.class);
    }

    /** The connections. */
    protected final Sockets sockets;

    /**
     * Creates the metrics of one server or client.
     *
     * @param sockets its connections
     */
    protected MeasuredSockets(Sockets sockets) {
        this.sockets = sockets;
    }

    /**
     * A connection was opened.
     *
     * @param remote address of the other side
     * @param name host name of the other side; may be null
     * @return metrics of the connection
     */
    public Sockets.Socket connected(SocketAddress remote, String name) {
        return sockets.open(sockets.wantsRemote() ? Addresses.text(remote, name) : null);
    }

    /**
     * A connection was closed.
     *
     * @param socket returned by {@link #connected}, or null
     * @param remote address of the other side
     */
    public void disconnected(Sockets.Socket socket, SocketAddress remote) {
        if (socket != null) {
            socket.close();
        }
    }

    @Override
    public void bytesRead(Sockets.Socket socket, SocketAddress remote, long bytes) {
        if (socket != null) {
            socket.recordRead(bytes);
        }
    }

    @Override
    public void bytesWritten(Sockets.Socket socket, SocketAddress remote, long bytes) {
        if (socket != null) {
            socket.recordWritten(bytes);
        }
    }

    @Override
    public void exceptionOccurred(Sockets.Socket socket, SocketAddress remote, Throwable thrown) {
        if (socket != null) {
            socket.recordError(thrown);
        }
    }

    /**
     * The remote address of a connection.
     *
     * @param socket returned by {@link #connected}, or null
     * @return null if not needed
     */
    protected static String remote(Sockets.Socket socket) {
        return socket == null ? null : socket.remote();
    }
}
