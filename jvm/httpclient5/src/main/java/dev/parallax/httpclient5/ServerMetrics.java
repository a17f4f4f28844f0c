package dev.parallax.httpclient5;

import dev.parallax.recorder.Catalog;
import dev.parallax.recorder.Description;
import dev.parallax.recorder.LabelledRecorder;
import dev.parallax.recorder.Recorder;
import dev.parallax.recorder.Registration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

/**
 * What clients measured for one server: the target of a route, even if requests go through a proxy. All durations are
 * recorded in nanoseconds; any thread may read at any time.
 *
 * <p>An attempt is one try to get one response: retries, redirects and responses to an authentication challenge are
 * further attempts of the same call. The wait, connect, handshake and exchange of an attempt follow one another and do
 * not overlap. A failed attempt is counted in {@link #failures()} and in the phases it had completed.
 */
public final class ServerMetrics {
    /**
     * Maximum number of method and status pairs, or phase and error pairs, per server; the rest goes to the "other"
     * row.
     */
    private static final int ROWS_MAX = 200;

    /** Numbers of up to three digits as text, so that none is formatted per request. */
    private static final String[] NUMBERS = numbers();

    private final String address;
    private final int port;
    private final Recorder waits = new Recorder();
    private final Recorder connects = new Recorder();
    private final Recorder handshakes = new Recorder();
    private final Recorder heads = new Recorder();
    private final LabelledRecorder requests = new LabelledRecorder(ROWS_MAX, "http.request.method", "http.response.status_code");
    private final LabelledRecorder failures = new LabelledRecorder(ROWS_MAX, "parallax.phase", "error.type");
    private final LabelledRecorder calls = new LabelledRecorder(ROWS_MAX, "http.request.resend_count");
    private final Recorder failedCalls = new Recorder();
    private final LongAdder pending = new LongAdder();
    private final LongAdder active = new LongAdder();

    ServerMetrics(String address, int port) {
        this.address = address;
        this.port = port;
    }

    /**
     * {@code server.address}.
     *
     * @return the host name; {@code _OTHER} for all servers beyond the limit
     */
    public String address() {
        return address;
    }

    /**
     * {@code server.port}.
     *
     * @return the port; -1 for all servers beyond the limit
     */
    public int port() {
        return port;
    }

    /**
     * {@code http.client.connection.wait_time}: from asking the pool for a connection until it gave one, including the
     * client's check of a connection that was idle for long.
     *
     * @return wait of the attempts that got a connection
     */
    public Recorder waits() {
        return waits;
    }

    /**
     * {@code http.client.connection.create_time}: name lookup, TCP connect and the tunnel through a proxy. Includes TLS
     * unless {@link HttpClientMetrics#timeHandshakes(org.apache.hc.client5.http.ssl.TlsSocketStrategy)} is used.
     *
     * @return time to open each new connection
     */
    public Recorder connects() {
        return connects;
    }

    /**
     * {@code http.client.connection.tls_time}: handshakes of wrapped TLS strategies, and those inside a tunnel.
     *
     * @return time of each successful handshake
     */
    public Recorder handshakes() {
        return handshakes;
    }

    /**
     * {@code http.client.response.head_time}: from sending the request on a leased connection until the head of the
     * response, which most timers call the request.
     *
     * @return time of the attempts whose response was complete
     */
    public Recorder responseHeads() {
        return heads;
    }

    /**
     * {@code http.client.request.duration}: from sending the request on a leased connection until the end of the
     * response body. Includes the time the application takes to read the body: compare with {@link #responseHeads()}.
     *
     * @return by method and status, time of the attempts whose response was complete
     */
    public LabelledRecorder requests() {
        return requests;
    }

    /**
     * {@code http.client.request.failed}: from the start of an attempt to its failure.
     *
     * @return by phase and {@code error.type}
     */
    public LabelledRecorder failures() {
        return failures;
    }

    /**
     * {@code http.client.call.duration}: from handing a request to the client until the end of the body, including all
     * waits and attempts.
     *
     * @return by number of retries, redirects and repeated requests after the first attempt
     */
    public LabelledRecorder calls() {
        return calls;
    }

    /**
     * {@code http.client.call.failed}: calls without a complete response.
     *
     * @return time from the start of a call to its failure
     */
    public Recorder failedCalls() {
        return failedCalls;
    }

    /**
     * {@code http.client.connection.pending_requests}. Counted by this class; takes no lock of the pool.
     *
     * @return number of requests that wait for a connection now
     */
    public long pending() {
        return pending.sum();
    }

    /**
     * {@code http.client.open_connections} with {@code http.connection.state=active}. Counted by this class; takes no
     * lock of the pool.
     *
     * @return number of connections in use now, including those being opened
     */
    public long active() {
        return active.sum();
    }

    /** Adds the registrations to {@code shown}. */
    void bindTo(Catalog catalog, Map<String, String> labels, List<Registration> shown) {
        Map<String, String> bound = new LinkedHashMap<>();
        bound.put("server.address", address);
        if (port >= 0) {
            bound.put("server.port", Integer.toString(port));
        }
        bound.putAll(labels);
        String prefix = "http.client.";
        shown.add(catalog.durations(
                Description.of(prefix + "connection.wait_time", "Wait for a pooled connection.").with(bound), waits));
        shown.add(catalog.durations(
                Description.of(prefix + "connection.create_time", "Name lookup and connect.").with(bound), connects));
        shown.add(catalog.durations(
                Description.of(prefix + "connection.tls_time", "TLS handshakes.").with(bound), handshakes));
        shown.add(catalog.durations(
                Description.of(prefix + "response.head_time", "From sending the request to the head of the response.")
                        .with(bound),
                heads));
        shown.add(catalog.durations(
                Description.of(prefix + "request.duration", "From sending the request to the end of the response body.")
                        .with(bound),
                requests));
        shown.add(catalog.durations(
                Description.of(prefix + "request.failed", "From the start of an attempt to its failure.").with(bound),
                failures));
        shown.add(catalog.durations(
                Description.of(prefix + "call.duration", "From handing a request to the client to the end of the response body.")
                        .with(bound),
                calls));
        shown.add(catalog.durations(
                Description.of(prefix + "call.failed", "Calls without a complete response.").with(bound),
                failedCalls));
        shown.add(catalog.upDownCounter(
                Description.of(prefix + "connection.pending_requests", "{request}", "Requests that wait for a connection.")
                        .with(bound),
                pending::sum));
        shown.add(catalog.upDownCounter(
                Description.of(prefix + "open_connections", "{connection}", "Connections in the pool.")
                        .with("http.connection.state", "active")
                        .with(bound),
                active::sum));
    }

    LongAdder pendingCount() {
        return pending;
    }

    LongAdder activeCount() {
        return active;
    }

    /** Never null; returns a cached string. */
    static String text(int number) {
        return number >= 0 && number < NUMBERS.length ? NUMBERS[number] : "";
    }

    private static String[] numbers() {
        String[] numbers = new String[1000];
        for (int i = 0; i < numbers.length; i++) {
            numbers[i] = Integer.toString(i);
        }
        return numbers;
    }
}
