package dev.parallax.vertx;

import io.vertx.core.net.SocketAddress;
import io.vertx.core.spi.metrics.DatagramSocketMetrics;

/** A socket for datagrams, in any version of Vert.x. */
public final class MeasuredDatagrams implements DatagramSocketMetrics {
    private final Datagrams datagrams;

    /**
     * Of one socket.
     *
     * @param options as of all
     */
    public MeasuredDatagrams(SeriesOptions options) {
        datagrams = new Datagrams(options);
    }

    @Override
    public void listening(String name, SocketAddress local) {
        datagrams.listens(Addresses.text(local, name));
    }

    @Override
    public void bytesRead(Void socket, SocketAddress remote, long bytes) {
        datagrams.read(bytes);
    }

    @Override
    public void bytesWritten(Void socket, SocketAddress remote, long bytes) {
        datagrams.written(bytes);
    }

    @Override
    public void exceptionOccurred(Void socket, SocketAddress remote, Throwable thrown) {
        datagrams.failed(thrown);
    }
}
