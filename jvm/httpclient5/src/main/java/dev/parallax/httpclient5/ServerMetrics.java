package dev.parallax.httpclient5;

import dev.parallax.recorder.Catalog;
import dev.parallax.recorder.Description;
import dev.parallax.recorder.Labelled;
import dev.parallax.recorder.Recorder;
import dev.parallax.recorder.Registration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

/**
 * What clients saw of one server: the target of a route, also where a proxy lies between.
 *
 * <p>An attempt is one try to have one request answered: retries, redirects and answers to a challenge are attempts of the
 * same call. Its wait, connect, handshake and exchange follow each other and do not overlap. What failed is in {@link
 * #failures()}, and in the phases that it had behind it.
 */
public final class ServerMetrics {
    /** How many methods times statuses, or phases times kinds, one server may have; the rest is in the "other" row. */
    private static final int ROWS_MAX = 200;

    /** Numbers of three digits as text, made once. */
    private static final String[] NUMBERS = numbers();

    private final String address;
    private final int port;
    private final Recorder waits = new Recorder();
    private final Recorder connects = new Recorder();
    private final Recorder handshakes = new Recorder();
    private final Recorder heads = new Recorder();
    private final Labelled requests = new Labelled(ROWS_MAX, "http.request.method", "http.response.status_code");
    private final Labelled failures = new Labelled(ROWS_MAX, "parallax.phase", "error.type");
    private final Labelled calls = new Labelled(ROWS_MAX, "http.request.resend_count");
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
     * @return the host's name; {@code _OTHER} for all servers beyond the limit
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
     * {@code http.client.connection.wait_time}: from asking the pool for a connection until it gave one. The client's test
     * of a connection that was idle for long is within it.
     *
     * @return of the attempts that got one
     */
    public Recorder waits() {
        return waits;
    }

    /**
     * {@code http.client.connection.create_time}: name lookup, TCP and the tunnel through a proxy. TLS as well where {@link
     * HttpClientMetrics#stamped(org.apache.hc.client5.http.ssl.TlsSocketStrategy)} is not in use.
     *
     * @return of the connections that were made
     */
    public Recorder connects() {
        return connects;
    }

    /**
     * {@code http.client.connection.tls_time}: the handshakes that were stamped, and those within a tunnel.
     *
     * @return of those that succeeded
     */
    public Recorder handshakes() {
        return handshakes;
    }

    /**
     * {@code http.client.response.head_time}: from sending the request on a connection of its own until the head of the
     * response. What most timers call the request.
     *
     * @return of the attempts whose response came to its end
     */
    public Recorder heads() {
        return heads;
    }

    /**
     * {@code http.client.request.duration}: from sending the request on a connection of its own until the end of the
     * response's body. How slowly the application reads is within it: compare with {@link #heads()}.
     *
     * @return by method and status, of the attempts whose response came to its end
     */
    public Labelled requests() {
        return requests;
    }

    /**
     * {@code http.client.request.failed}: from the attempt's begin to its failure.
     *
     * @return by the phase in which it happened and what happened
     */
    public Labelled failures() {
        return failures;
    }

    /**
     * {@code http.client.call.duration}: from handing a request to the client until the end of the body that the caller
     * gets, with all waits and attempts.
     *
     * @return by the attempts after the first
     */
    public Labelled calls() {
        return calls;
    }

    /**
     * {@code http.client.call.failed}: the same for calls that had no response, or not all of it.
     *
     * @return from begin to failure
     */
    public Recorder failedCalls() {
        return failedCalls;
    }

    /**
     * {@code http.client.connection.pending_requests}. Asks no pool: it is counted where the client waits.
     *
     * @return how many wait for a connection now
     */
    public long pending() {
        return pending.sum();
    }

    /**
     * {@code http.client.open_connections} with {@code http.connection.state=active}. Asks no pool.
     *
     * @return how many connections are lent out now, the ones being made included
     */
    public long active() {
        return active.sum();
    }

    /** Adds what there is to close to {@code shown}. */
    void showIn(Catalog catalog, Map<String, String> labels, List<Registration> shown) {
        Map<String, String> bound = new LinkedHashMap<>();
        bound.put("server.address", address);
        if (port >= 0) {
            bound.put("server.port", Integer.toString(port));
        }
        bound.putAll(labels);
        String prefix = "http.client.";
        shown.add(catalog.durations(
                Description.of(prefix + "connection.wait_time", "Wait for a connection of the pool.").with(bound), waits));
        shown.add(catalog.durations(
                Description.of(prefix + "connection.create_time", "Name lookup and connect.").with(bound), connects));
        shown.add(catalog.durations(
                Description.of(prefix + "connection.tls_time", "TLS handshakes.").with(bound), handshakes));
        shown.add(catalog.durations(
                Description.of(prefix + "response.head_time", "From sending the request to the head of the response.")
                        .with(bound),
                heads));
        shown.add(catalog.durations(
                Description.of(prefix + "request.duration", "From sending the request to the end of the response's body.")
                        .with(bound),
                requests));
        shown.add(catalog.durations(
                Description.of(prefix + "request.failed", "From the begin of an attempt to its failure.").with(bound),
                failures));
        shown.add(catalog.durations(
                Description.of(prefix + "call.duration", "From handing over a request to the end of what it returned.")
                        .with(bound),
                calls));
        shown.add(catalog.durations(
                Description.of(prefix + "call.failed", "Calls that had no response, or not all of it.").with(bound),
                failedCalls));
        shown.add(catalog.upDown(
                Description.of(prefix + "connection.pending_requests", "{request}", "Who waits for a connection.")
                        .with(bound),
                pending::sum));
        shown.add(catalog.upDown(
                Description.of(prefix + "open_connections", "{connection}", "Connections of the pool.")
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

    /** Never null, and made before. */
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
