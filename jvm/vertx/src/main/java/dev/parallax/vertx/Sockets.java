package dev.parallax.vertx;

import dev.parallax.recorder.Counter;
import dev.parallax.recorder.ThreadHandle;
import dev.parallax.recorder.UpDownCounter;
import java.util.List;
import java.util.Map;

/**
 * Connections of one server or client: TCP and HTTP.
 *
 * <p>Memory per connection: about thirty bytes, since connections with equal labels share their series. If the remote
 * address is a label, its text is built per connection.
 */
public final class Sockets {
    private final Domain domain;
    private final boolean isServer;
    private final boolean wantsRemote;
    private final SeriesByLabels<Series> all;
    private final SeriesByLabels<UpDownCounter> webSockets;

    /**
     * Creates the series of a domain.
     *
     * @param options what is measured
     * @param domain {@code http.server}, {@code http.client}, {@code net.server} or {@code net.client}
     * @param fixed labels with the same value for all connections; disabled ones are left out
     */
    public Sockets(SeriesOptions options, String domain, Map<Label, String> fixed) {
        this.domain = new Domain(options, domain);
        isServer = domain.endsWith("server");
        Map<Label, String> on = Exchanges.on(this.domain, fixed);
        List<Label> remote = this.domain.on(Label.REMOTE);
        wantsRemote = !remote.isEmpty();
        all = new SeriesByLabels<>(options.rowsMax(), on, remote, Series::new);
        webSockets = new SeriesByLabels<>(
                options.rowsMax(),
                on,
                remote,
                bound -> this.domain.upDownCounter("active.ws.connections", "Number of websockets currently opened", bound));
    }

    /** The series of connections with equal labels. */
    private final class Series {
        private final UpDownCounter active;
        private final Counter read;
        private final Counter written;
        private final SeriesByLabels<Counter> errors;
        private final String remote;

        Series(Map<Label, String> bound) {
            remote = bound.get(Label.REMOTE);
            active = domain.upDownCounter(
                    "active.connections",
                    isServer
                            ? "Number of opened connections to the server"
                            : "Number of connections to the remote host currently opened",
                    bound);
            read = domain.counter(
                    "bytes.read", "Number of bytes received " + (isServer ? "by the server" : "from the remote host"), bound);
            written = domain.counter(
                    "bytes.written", "Number of bytes sent " + (isServer ? "by the server" : "to the remote host"), bound);
            errors = new SeriesByLabels<>(
                    domain.rowsMax(),
                    bound,
                    domain.on(Label.CLASS_NAME),
                    failed -> domain.counter("errors", "Number of errors", failed));
        }
    }

    /** One connection. */
    public static final class Socket {
        private final Series series;

        /** Handles for the first thread that reported bytes; mostly a connection has one thread. */
        private ThreadHandle read;

        private ThreadHandle written;

        private Socket(Series series) {
            this.series = series;
        }

        /**
         * The remote address.
         *
         * @return null if not needed
         */
        public String remote() {
            return series.remote;
        }

        /** The connection was closed. */
        public void close() {
            series.active.decrement();
        }

        /**
         * Bytes were received.
         *
         * @param bytes their number
         */
        public void recordRead(long bytes) {
            ThreadHandle handle = read;
            if (handle == null) {
                handle = series.read.threadHandle();
                read = handle;
            }
            handle.record(bytes);
        }

        /**
         * Bytes were sent.
         *
         * @param bytes their number
         */
        public void recordWritten(long bytes) {
            ThreadHandle handle = written;
            if (handle == null) {
                handle = series.written.threadHandle();
                written = handle;
            }
            handle.record(bytes);
        }

        /**
         * An error occurred.
         *
         * @param thrown its class becomes a label
         */
        public void recordError(Throwable thrown) {
            series.errors.get(new String[] {thrown.getClass().getSimpleName()}).increment();
        }
    }

    /**
     * Whether the remote address is a label.
     *
     * @return if false, it need not be built
     */
    public boolean wantsRemote() {
        return wantsRemote;
    }

    /**
     * A connection was opened.
     *
     * @param remote address of the other side; null if not needed
     * @return metrics of the connection
     */
    public Socket open(String remote) {
        Series series = all.get(new String[] {remote});
        series.active.increment();
        return new Socket(series);
    }

    /**
     * A WebSocket was opened.
     *
     * @param remote address of the other side; null if not needed
     * @return to be decremented when it is closed
     */
    public UpDownCounter openWebSocket(String remote) {
        UpDownCounter open = webSockets.get(new String[] {remote});
        open.increment();
        return open;
    }
}
