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
 * Measures requests and responses of one HTTP server, or of a client and one server it calls.
 *
 * <p>Cost per exchange: two clock reads, three records and an increment and decrement of the active count (one more
 * count for a client), using the thread's own handles if it has them and bodies are at most 3,600 bytes; two label
 * lookups if the labels differ from those of the previous use; no lock, and no allocation once a thread has had as many
 * exchanges in progress before.
 */
public final class Exchanges {
    /** Remote, path, method, version, route, code. */
    static final int LABELS_MAX = 6;

    private static final String[] CODES = codes();

    private final Domain domain;
    private final boolean isServer;
    private final SeriesByLabels<Begun> begun;
    private final SeriesByLabels<Ended> ended;
    private final SeriesByLabels<Counter> resets;
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
        begun = new SeriesByLabels<>(rowsMax, fixed, atBegin, Begun::new);
        ended = new SeriesByLabels<>(rowsMax, fixed, atEnd, Ended::new);
        resets = new SeriesByLabels<>(
                rowsMax, fixed, atBegin, bound -> domain.counter("request.resets", "Number of request resets", bound));
    }

    /**
     * For a server.
     *
     * @param options what is measured
     * @param fixed labels with the same value for all requests; disabled ones are left out
     * @return its exchanges
     */
    public static Exchanges ofServer(SeriesOptions options, Map<Label, String> fixed) {
        Domain domain = new Domain(options, "http.server");
        return new Exchanges(domain, true, on(domain, fixed));
    }

    /**
     * For a client and one server.
     *
     * @param options what is measured
     * @param fixed labels with the same value for all requests, including the remote address; disabled ones are left
     *     out
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

    /** The series updated at the begin. */
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

    /** The series updated at the end. */
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
     * Whether {@link #begin} needs a value for this label; if not, it need not be built.
     *
     * @param label remote, path, method or version
     * @return whether it is enabled and not fixed
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
     * Whether {@link #begin} needs the URI, which Vert.x builds when it is first asked for.
     *
     * @return whether the path is needed
     */
    public boolean wantsUri() {
        return pathAt >= 0;
    }

    /**
     * A request begins.
     *
     * @param remote address of the other side; null if not needed
     * @param uri of the request; may be null if not needed
     * @param method of the request
     * @param version of HTTP; null if not needed
     * @return the exchange to end
     */
    public Exchange begin(String remote, String uri, String method, String version) {
        Exchange exchange = prepare();
        begin(exchange, remote, uri, method, version);
        return exchange;
    }

    /**
     * Prepares an exchange before its request begins.
     *
     * @return the exchange to begin
     */
    public Exchange prepare() {
        Exchange exchange = free.ofThisThread().take();
        exchange.exchanges = this;
        return exchange;
    }

    /**
     * A pushed response begins.
     *
     * @param remote address of the other side; null if not needed
     * @param uri of the request it responds to
     * @param method of the request it responds to
     * @param version of HTTP; null if not needed
     * @return an exchange of which only the response must be ended
     */
    public Exchange push(String remote, String uri, String method, String version) {
        Exchange exchange = begin(remote, uri, method, version);
        exchange.end(Exchange.REQUEST);
        return exchange;
    }

    /**
     * A prepared request begins.
     *
     * @param exchange returned by {@link #prepare}
     * @param remote address of the other side; null if not needed
     * @param uri of the request; may be null if not needed
     * @param method of the request
     * @param version of HTTP; null if not needed
     */
    public void begin(Exchange exchange, String remote, String uri, String method, String version) {
        boolean isSame = exchange.lastExchanges == this;
        isSame &= setLabel(exchange, remoteAt, remote);
        isSame &= setLabel(exchange, pathAt, pathAt < 0 ? null : Path.of(uri));
        isSame &= setLabel(exchange, methodAt, method);
        isSame &= setLabel(exchange, versionAt, version);
        Begun series = isSame ? (Begun) exchange.lastBegun : begun.get(exchange.values);
        if (!isSame) {
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
        exchange.begin(series);
    }

    /**
     * The request has been read or written.
     *
     * @param exchange returned by {@link #begin}
     * @param bytes size of its body
     */
    public void requestEnd(Exchange exchange, long bytes) {
        if (exchange.series == null) {
            return;
        }
        exchange.requestBytes.record(bytes);
        if (exchange.end(Exchange.REQUEST)) {
            exchange.active.record(-1);
            exchange.free();
        }
    }

    /**
     * The response has been written or read.
     *
     * @param exchange returned by {@link #begin}
     * @param code its status
     * @param bytes size of its body
     */
    public void responseEnd(Exchange exchange, int code, long bytes) {
        if (exchange.series == null) {
            return;
        }
        boolean isSame = setLabel(exchange, routeAt, exchange.route());
        Ended series = (Ended) exchange.lastEnded;
        if (series == null || !isSame || exchange.lastCode != code) {
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
        if (exchange.end(Exchange.RESPONSE)) {
            exchange.active.record(-1);
            exchange.free();
        }
    }

    /**
     * The exchange was abandoned. This may follow one of the two ends, and the other may still come.
     *
     * @param exchange returned by {@link #begin}
     */
    public void reset(Exchange exchange) {
        detach(exchange);
        if (isServer && exchange.series != null) {
            resets.get(exchange.values).increment();
        }
    }

    /**
     * The exchange became something else: a tunnel or a WebSocket. It no longer counts as active.
     *
     * @param exchange returned by {@link #begin}
     */
    public void detach(Exchange exchange) {
        if (exchange.series != null && exchange.markReset()) {
            exchange.active.record(-1);
        }
    }

    /**
     * Sets a label's value. Returns whether it was the same object before; an equal string counts as different, and the
     * lookup then finds the same series.
     */
    private static boolean setLabel(Exchange exchange, int at, String value) {
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
