package dev.parallax.vertx;

import dev.parallax.recorder.Counter;
import dev.parallax.recorder.ThreadHandle;
import dev.parallax.recorder.UpDownCounter;
import java.util.List;
import java.util.Map;

/**
 * Connections of one server or client: TCP, and HTTP's.
 *
 * <p>Of a connection some thirty bytes are kept: those whose labels are the same share their series. Where the remote address is
 * a label, its text is built for each connection.
 */
public final class Sockets {
    private final Domain domain;
    private final boolean isServer;
    private final boolean wantsRemote;
    private final Bound<Series> all;
    private final Bound<UpDownCounter> webSockets;

    /**
     * Of a domain.
     *
     * @param options as of all
     * @param domain one of {@code http.server}, {@code http.client}, {@code net.server}, {@code net.client}
     * @param fixed labels that are the same for all; those that are off are left out
     */
    public Sockets(SeriesOptions options, String domain, Map<Label, String> fixed) {
        this.domain = new Domain(options, domain);
        isServer = domain.endsWith("server");
        Map<Label, String> on = Exchanges.on(this.domain, fixed);
        List<Label> remote = this.domain.on(Label.REMOTE);
        wantsRemote = !remote.isEmpty();
        all = new Bound<>(options.rowsMax(), on, remote, Series::new);
        webSockets = new Bound<>(
                options.rowsMax(),
                on,
                remote,
                bound -> this.domain.upDownCounter("active.ws.connections", "Number of websockets currently opened", bound));
    }

    /** The series of connections whose labels are the same. */
    private final class Series {
        private final UpDownCounter active;
        private final Counter read;
        private final Counter written;
        private final Bound<Counter> errors;
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
            errors = new Bound<>(
                    domain.rowsMax(),
                    bound,
                    domain.on(Label.CLASS_NAME),
                    failed -> domain.counter("errors", "Number of errors", failed));
        }
    }

    /** One connection. */
    public static final class Socket {
        private final Series series;

        /** As the thread finds them that first told of bytes: mostly a connection has one. */
        private ThreadHandle read;

        private ThreadHandle written;

        private Socket(Series series) {
            this.series = series;
        }

        /**
         * The address of the other.
         *
         * @return null where it is not wanted
         */
        public String remote() {
            return series.remote;
        }

        /** It is closed. */
        public void disconnected() {
            series.active.decrement();
        }

        /**
         * Bytes came.
         *
         * @param bytes how many
         */
        public void read(long bytes) {
            ThreadHandle near = read;
            if (near == null) {
                near = series.read.threadHandle();
                read = near;
            }
            near.record(bytes);
        }

        /**
         * Bytes went.
         *
         * @param bytes how many
         */
        public void written(long bytes) {
            ThreadHandle near = written;
            if (near == null) {
                near = series.written.threadHandle();
                written = near;
            }
            near.record(bytes);
        }

        /**
         * It failed.
         *
         * @param thrown how
         */
        public void failed(Throwable thrown) {
            series.errors.get(new String[] {thrown.getClass().getSimpleName()}).increment();
        }
    }

    /**
     * Whether the remote address is a label.
     *
     * @return where it is not, it need not be built
     */
    public boolean wantsRemote() {
        return wantsRemote;
    }

    /**
     * A connection was made.
     *
     * @param remote address of the other; null where it is not wanted
     * @return to be told what happens on it
     */
    public Socket connected(String remote) {
        Series series = all.get(new String[] {remote});
        series.active.increment();
        return new Socket(series);
    }

    /**
     * A web socket was opened.
     *
     * @param remote address of the other; null where it is not wanted
     * @return to be counted down when it is closed
     */
    public UpDownCounter webSocket(String remote) {
        UpDownCounter open = webSockets.get(new String[] {remote});
        open.increment();
        return open;
    }
}
