package dev.parallax.vertx45;

import dev.parallax.vertx.Sockets;
import io.vertx.core.net.SocketAddress;
import io.vertx.core.spi.metrics.TCPMetrics;

/** TCP connections of a server or client, those of HTTP too. A socket of which nobody was told is none. */
class MeasuredTcp implements TCPMetrics<Sockets.Socket> {
    final Sockets sockets;

    MeasuredTcp(Sockets sockets) {
        this.sockets = sockets;
    }

    @Override
    public Sockets.Socket connected(SocketAddress remote, String name) {
        return sockets.connected(sockets.wantsRemote() ? Addresses.text(remote, name) : null);
    }

    @Override
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
}
