package dev.parallax.vertx;

import io.vertx.core.net.SocketAddress;
import io.vertx.core.spi.metrics.DatagramSocketMetrics;

/** Metrics of a datagram socket, for all versions of Vert.x. */
public final class MeasuredDatagrams implements DatagramSocketMetrics {
    private final Datagrams datagrams;

    /**
     * Creates the metrics of one socket.
     *
     * @param options what is measured
     */
    public MeasuredDatagrams(SeriesOptions options) {
        datagrams = new Datagrams(options);
    }

    @Override
    public void listening(String name, SocketAddress local) {
        datagrams.startListening(Addresses.text(local, name));
    }

    @Override
    public void bytesRead(Void socket, SocketAddress remote, long bytes) {
        datagrams.recordRead(bytes);
    }

    @Override
    public void bytesWritten(Void socket, SocketAddress remote, long bytes) {
        datagrams.recordWritten(bytes);
    }

    @Override
    public void exceptionOccurred(Void socket, SocketAddress remote, Throwable thrown) {
        datagrams.recordError(thrown);
    }
}
