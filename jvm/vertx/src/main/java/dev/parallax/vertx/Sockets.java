package dev.parallax.vertx;

import dev.parallax.recorder.Counter;
import dev.parallax.recorder.UpDownCounter;
import java.util.List;
import java.util.Map;

/**
 * Connections of one server or client: TCP, and HTTP's.
 *
 * <p>Nothing is kept for a connection: those whose labels are the same share one {@link Socket}. Where the remote address is
 * a label, its text is built for each connection.
 */
public final class Sockets {
    private final Domain domain;
    private final boolean isServer;
    private final boolean wantsRemote;
    private final Bound<Socket> sockets;
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
        sockets = new Bound<>(options.rowsMax(), on, remote, Socket::new);
        webSockets = new Bound<>(
                options.rowsMax(),
                on,
                remote,
                bound -> this.domain.upDown("active.ws.connections", "Number of websockets currently opened", bound));
    }

    /** Connections whose labels are the same. */
    public final class Socket {
        private final UpDownCounter active;
        private final Counter read;
        private final Counter written;
        private final Bound<Counter> errors;
        private final String remote;

        private Socket(Map<Label, String> bound) {
            remote = bound.get(Label.REMOTE);
            active = domain.upDown(
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
                    all -> domain.counter("errors", "Number of errors", all));
        }

        /**
         * The address of the other.
         *
         * @return null where it is not wanted
         */
        public String remote() {
            return remote;
        }

        /** It is closed. */
        public void disconnected() {
            active.decrement();
        }

        /**
         * Bytes came.
         *
         * @param bytes how many
         */
        public void read(long bytes) {
            read.add(bytes);
        }

        /**
         * Bytes went.
         *
         * @param bytes how many
         */
        public void written(long bytes) {
            written.add(bytes);
        }

        /**
         * It failed.
         *
         * @param thrown how
         */
        public void failed(Throwable thrown) {
            errors.get(new String[] {thrown.getClass().getSimpleName()}).increment();
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
        Socket socket = sockets.get(new String[] {remote});
        socket.active.increment();
        return socket;
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
