package dev.parallax.vertx;

import dev.parallax.recorder.AmountRecorder;
import dev.parallax.recorder.Counter;
import dev.parallax.recorder.Recorder;
import dev.parallax.recorder.UpDownCounter;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/**
 * Requests and their responses, of one HTTP server or of a client and one server that it asks.
 *
 * <p>Cost of one: two readings of the clock, three records and the count of those under way, up and down (of a client one count
 * more), without looking for the thread's own where it has one and bodies are of up to 3,600 bytes; two look-ups of labels, and
 * of what the thread has, where they are not those of the exchange before; no lock, and no allocation once as many exchanges
 * were under way on a thread.
 */
public final class Exchanges {
    /** Remote, path, method, version, route, code. */
    static final int LABELS_MAX = 6;

    private static final String[] CODES = codes();

    private final Domain domain;
    private final boolean isServer;
    private final Bound<Begun> begun;
    private final Bound<Ended> ended;
    private final Bound<Counter> resets;
    private final FreeExchanges.ByThread free = new FreeExchanges.ByThread();

    private final int remoteAt;
    private final int pathAt;
    private final int methodAt;
    private final int versionAt;
    private final int routeAt;
    private final int codeAt;

    private Exchanges(Domain domain, boolean isServer, Map<Label, String> fixed) {
        this.domain = domain;
        this.isServer = isServer;
        List<Label> atBegin = domain.on(Label.REMOTE, Label.PATH, Label.METHOD, Label.VERSION);
        atBegin.removeAll(fixed.keySet());
        List<Label> atEnd = new ArrayList<>(atBegin);
        atEnd.addAll(isServer ? domain.on(Label.ROUTE, Label.CODE) : domain.on(Label.CODE));
        remoteAt = atEnd.indexOf(Label.REMOTE);
        pathAt = atEnd.indexOf(Label.PATH);
        methodAt = atEnd.indexOf(Label.METHOD);
        versionAt = atEnd.indexOf(Label.VERSION);
        routeAt = atEnd.indexOf(Label.ROUTE);
        codeAt = atEnd.indexOf(Label.CODE);
        int rowsMax = domain.rowsMax();
        begun = new Bound<>(rowsMax, fixed, atBegin, Begun::new);
        ended = new Bound<>(rowsMax, fixed, atEnd, Ended::new);
        resets = new Bound<>(
                rowsMax, fixed, atBegin, bound -> domain.counter("request.resets", "Number of request resets", bound));
    }

    /**
     * Of a server.
     *
     * @param options as of all
     * @param fixed labels that are the same for all; those that are off are left out
     * @return its exchanges
     */
    public static Exchanges ofServer(SeriesOptions options, Map<Label, String> fixed) {
        Domain domain = new Domain(options, "http.server");
        return new Exchanges(domain, true, on(domain, fixed));
    }

    /**
     * Of a client and one server.
     *
     * @param options as of all
     * @param fixed labels that are the same for all, the remote address among them; those that are off are left out
     * @return its exchanges
     */
    public static Exchanges ofClient(SeriesOptions options, Map<Label, String> fixed) {
        Domain domain = new Domain(options, "http.client");
        return new Exchanges(domain, false, on(domain, fixed));
    }

    static Map<Label, String> on(Domain domain, Map<Label, String> labels) {
        Map<Label, String> on = new EnumMap<>(Label.class);
        labels.forEach((label, value) -> {
            if (domain.has(label)) {
                on.put(label, value);
            }
        });
        return on;
    }

    /** The series of those that have begun. */
    private final class Begun {
        private final UpDownCounter active;
        private final Counter requests;
        private final AmountRecorder bytes;

        Begun(Map<Label, String> bound) {
            active = domain.upDownCounter(
                    "active.requests",
                    isServer ? "Number of requests being processed" : "Number of requests waiting for a response",
                    bound);
            requests = isServer ? null : domain.counter("requests", "Number of requests sent", bound);
            bytes = domain.amounts("request.bytes", "Size of requests in bytes", bound);
        }
    }

    /** The series of those that have ended. */
    private final class Ended {
        private final Recorder time;
        private final AmountRecorder bytes;

        Ended(Map<Label, String> bound) {
            time = domain.durations("response.time", isServer ? "Request processing time" : "Response time", bound);
            if (isServer) {
                domain.count("requests", "Number of processed requests", bound, time);
            } else {
                domain.count("responses", "Response count with codes", bound, time);
            }
            bytes = domain.amounts("response.bytes", "Size of responses in bytes", bound);
        }
    }

    /**
     * Whether {@link #begin} wants that label: what is not wanted need not be built.
     *
     * @param label remote, path, method or version
     * @return whether it is on and not bound already
     */
    public boolean wants(Label label) {
        return switch (label) {
            case REMOTE -> remoteAt >= 0;
            case PATH -> pathAt >= 0;
            case METHOD -> methodAt >= 0;
            case VERSION -> versionAt >= 0;
            default -> false;
        };
    }

    /**
     * Whether {@link #begin} wants the URI, which Vert.x puts together when it is first asked for.
     *
     * @return as {@link #wants} says of the path
     */
    public boolean wantsUri() {
        return pathAt >= 0;
    }

    /**
     * A request begins.
     *
     * @param remote the other's address; null where it is not wanted
     * @param uri as the request has it; may be null where it is not wanted
     * @param method as the request has it
     * @param version of HTTP; null where it is not wanted
     * @return to be ended
     */
    public Exchange begin(String remote, String uri, String method, String version) {
        Exchange exchange = prepare();
        begin(exchange, remote, uri, method, version);
        return exchange;
    }

    /**
     * A request is going to begin.
     *
     * @return to be begun
     */
    public Exchange prepare() {
        Exchange exchange = free.ofThisThread().take();
        exchange.exchanges = this;
        return exchange;
    }

    /**
     * A response that nobody asked for begins.
     *
     * @param remote the other's address; null where it is not wanted
     * @param uri that it would be the answer to
     * @param method that it would be the answer to
     * @param version of HTTP; null where it is not wanted
     * @return of which only the response is to be ended
     */
    public Exchange push(String remote, String uri, String method, String version) {
        Exchange exchange = begin(remote, uri, method, version);
        exchange.ends(Exchange.REQUEST);
        return exchange;
    }

    /**
     * A request that was prepared begins.
     *
     * @param exchange that {@link #prepare} returned
     * @param remote the other's address; null where it is not wanted
     * @param uri as the request has it; may be null where it is not wanted
     * @param method as the request has it
     * @param version of HTTP; null where it is not wanted
     */
    public void begin(Exchange exchange, String remote, String uri, String method, String version) {
        boolean isAsBefore = exchange.lastExchanges == this;
        isAsBefore &= isAsBefore(exchange, remoteAt, remote);
        isAsBefore &= isAsBefore(exchange, pathAt, pathAt < 0 ? null : Path.of(uri));
        isAsBefore &= isAsBefore(exchange, methodAt, method);
        isAsBefore &= isAsBefore(exchange, versionAt, version);
        Begun series = isAsBefore ? (Begun) exchange.lastBegun : begun.get(exchange.values);
        if (!isAsBefore) {
            exchange.lastExchanges = this;
            exchange.lastBegun = series;
            exchange.lastEnded = null;
            exchange.active = series.active.threadHandle();
            exchange.requestBytes = series.bytes.threadHandle();
        }
        exchange.active.record(1);
        if (!isServer) {
            series.requests.increment();
        }
        exchange.begins(series);
    }

    /**
     * The request has been read or written.
     *
     * @param exchange that {@link #begin} returned
     * @param bytes of its body
     */
    public void requestEnd(Exchange exchange, long bytes) {
        if (exchange.series == null) {
            return;
        }
        exchange.requestBytes.record(bytes);
        if (exchange.ends(Exchange.REQUEST)) {
            exchange.active.record(-1);
            exchange.free();
        }
    }

    /**
     * The response has been written or read.
     *
     * @param exchange that {@link #begin} returned
     * @param code its status
     * @param bytes of its body
     */
    public void responseEnd(Exchange exchange, int code, long bytes) {
        if (exchange.series == null) {
            return;
        }
        boolean isAsBefore = isAsBefore(exchange, routeAt, exchange.route());
        Ended series = (Ended) exchange.lastEnded;
        if (series == null || !isAsBefore || exchange.lastCode != code) {
            if (codeAt >= 0) {
                exchange.values[codeAt] = code(code);
            }
            series = ended.get(exchange.values);
            exchange.lastEnded = series;
            exchange.lastCode = code;
            exchange.time = series.time.threadHandle();
            exchange.responseBytes = series.bytes.threadHandle();
        }
        exchange.time.record(System.nanoTime() - exchange.begunNs);
        exchange.responseBytes.record(bytes);
        if (exchange.ends(Exchange.RESPONSE)) {
            exchange.active.record(-1);
            exchange.free();
        }
    }

    /**
     * It was given up. May come after one of both ends, and the other may still come.
     *
     * @param exchange that {@link #begin} returned
     */
    public void reset(Exchange exchange) {
        leave(exchange);
        if (isServer && exchange.series != null) {
            resets.get(exchange.values).increment();
        }
    }

    /**
     * It goes on as something else: a tunnel, a web socket.
     *
     * @param exchange that {@link #begin} returned
     */
    public void leave(Exchange exchange) {
        if (exchange.series != null && exchange.resets()) {
            exchange.active.record(-1);
        }
    }

    /** Puts a label's value where it belongs. Another text that says the same is another: then the look-up finds it. */
    private static boolean isAsBefore(Exchange exchange, int at, String value) {
        if (at < 0 || exchange.values[at] == value) {
            return true;
        }
        exchange.values[at] = value;
        return false;
    }

    private static String code(int code) {
        return code >= 0 && code < CODES.length ? CODES[code] : Integer.toString(code);
    }

    private static String[] codes() {
        String[] codes = new String[1000];
        for (int n = 0; n < codes.length; n++) {
            codes[n] = Integer.toString(n);
        }
        return codes;
    }
}
