package dev.parallax.vertx;

import io.vertx.core.net.SocketAddress;
import io.vertx.core.spi.metrics.NetworkMetrics;
import io.vertx.core.spi.observability.HttpRequest;
import io.vertx.core.spi.observability.HttpResponse;

/**
 * Connections of a server or client, those of HTTP too; a version's own class adds the name that this has there. A socket of
 * which nobody was told is none.
 */
public abstract class MeasuredSockets implements NetworkMetrics<Sockets.Socket> {
    static {
        Inlining.allow(SocketAddress.class, HttpRequest.class, HttpResponse.class);
    }

    /** Whose connections these are. */
    protected final Sockets sockets;

    /**
     * Of one server or client.
     *
     * @param sockets its connections
     */
    protected MeasuredSockets(Sockets sockets) {
        this.sockets = sockets;
    }

    /**
     * A connection was made.
     *
     * @param remote the other's address
     * @param name of the other's host; may be null
     * @return to be told what happens on it
     */
    public Sockets.Socket connected(SocketAddress remote, String name) {
        return sockets.connected(sockets.wantsRemote() ? Addresses.text(remote, name) : null);
    }

    /**
     * It is closed.
     *
     * @param socket that {@link #connected} returned, or null
     * @param remote the other's address
     */
    public void disconnected(Sockets.Socket socket, SocketAddress remote) {
        if (socket != null) {
            socket.disconnected();
        }
    }

    @Override
    public void bytesRead(Sockets.Socket socket, SocketAddress remote, long bytes) {
        if (socket != null) {
            socket.read(bytes);
        }
    }

    @Override
    public void bytesWritten(Sockets.Socket socket, SocketAddress remote, long bytes) {
        if (socket != null) {
            socket.written(bytes);
        }
    }

    @Override
    public void exceptionOccurred(Sockets.Socket socket, SocketAddress remote, Throwable thrown) {
        if (socket != null) {
            socket.failed(thrown);
        }
    }

    /**
     * Where a connection goes to.
     *
     * @param socket that {@link #connected} returned, or null
     * @return null where it is not wanted
     */
    protected static String remote(Sockets.Socket socket) {
        return socket == null ? null : socket.remote();
    }
}
