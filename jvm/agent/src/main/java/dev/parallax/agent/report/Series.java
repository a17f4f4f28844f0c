package dev.parallax.agent.report;

/** Everything the agent measures, named after OpenTelemetry's semantic conventions where they exist. */
public enum Series {
    /** Lateness of the meter. */
    HICCUP("jvm.hiccup", "lateness of each wake-up of the hiccup meter; a stall delays every wake-up due within it"),
    /** Its causes. */
    HICCUP_PART("jvm.hiccup.part", "the part of a hiccup with this cause; the parts of a hiccup sum to its length"),
    /** Lateness of the virtual thread. */
    CANARY("jvm.canary", "lateness of each wake-up of a virtual thread"),
    /** Its causes. */
    CANARY_PART("jvm.canary.part", "the part of a virtual thread's hiccup with this cause"),
    /** Hiccups of the idle companion JVM. */
    CONTROL("jvm.control.hiccup", "hiccups of an idle JVM next to this one"),
    /** Safepoints. */
    PAUSE("jvm.pause", "each pause of the JVM, from its start until threads were resumed"),
    /** Wait for a connection. */
    HTTP_WAIT("http.client.connection.wait_time", "wait for a pooled connection"),
    /** New connections. */
    HTTP_CREATE("http.client.connection.create_time", "name lookup, TCP connect and tunnel; includes TLS if it is not timed separately"),
    /** TLS handshakes. */
    HTTP_TLS("http.client.connection.tls_time", "TLS handshakes that are timed separately"),
    /** What most timers call the request. */
    HTTP_HEAD("http.client.response.head_time", "from sending the request to the head of the response"),
    /** Whole requests. */
    HTTP_REQUEST("http.client.request.duration", "from sending the request to the end of the response body"),
    /** Attempts without a response. */
    HTTP_FAILED("http.client.request.failed", "failed attempts, from start to failure"),
    /** Whole calls, as the application sees them. */
    HTTP_CALL("http.client.call.duration", "calls including all waits and attempts, to the end of the response body"),
    /** Calls without a response. */
    HTTP_CALL_FAILED("http.client.call.failed", "calls without a complete response"),
    /** A number. */
    HTTP_PENDING("http.client.connection.pending_requests", "requests that wait for a connection"),
    /** A number. */
    HTTP_ACTIVE("http.client.open_connections.active", "connections in use"),
    /** Requests of the JDK's client, which reveals no further detail. */
    JDK_REQUEST(
            "http.client.request.duration",
            "from handing a request to the JDK's client until its caller got the response, including waits for threads and connections,"
                    + " redirects, and the body unless it is streamed"),
    /** The same without a response. */
    JDK_FAILED("http.client.request.failed", "from handing a request to the JDK's client to its failure"),
    /** Wait for a connection. */
    DB_WAIT("db.client.connection.wait_time", "wait for a pooled connection, without its test and the pool's suspension"),
    /** Test of an idle connection. */
    DB_TEST("db.client.connection.test_time", "test of an idle connection before it is lent"),
    /** Suspended pools. */
    DB_SUSPEND("db.client.connection.suspend_time", "wait while the pool was suspended"),
    /** Timeouts. */
    DB_TIMEOUT("db.client.connection.timeouts", "waits that timed out"),
    /** Other failures to get a connection. */
    DB_FAILED("db.client.connection.failed", "borrows that failed for a reason other than a timeout"),
    /** Wait for a connection, for pools whose borrowers create connections themselves. */
    DB_WAIT_APART(
            "db.client.connection.wait_time",
            "wait for a pooled connection, without creating one; includes its test if the pool tests"),
    /** Wait for a connection, for pools that never wait for one in use. */
    DB_WAIT_MADE(
            "db.client.connection.wait_time",
            "time until the pool had a connection, that is, created or tested one"),
    /** Use. */
    DB_USE("db.client.connection.use_time", "from getting a connection to returning it"),
    /** New connections. */
    DB_CREATE("db.client.connection.create_time", "creating a connection, including its set-up by the pool"),
    /** Failures to create one. */
    DB_CREATE_FAILED("db.client.connection.create_failed", "failed attempts to create a connection"),
    /** A number. */
    DB_PENDING("db.client.connection.pending_requests", "requests that wait for a connection"),
    /** A number. */
    DB_USED("db.client.connection.count.used", "connections in use"),
    /** A number. */
    DB_IDLE("db.client.connection.count.idle", "idle connections");

    /** Label for everything without a label of its own. */
    public static final String OTHER = "_OTHER";

    private final String title;
    private final String meaning;

    Series(String title, String meaning) {
        this.title = title;
        this.meaning = meaning;
    }

    /**
     * Name of the series.
     *
     * @return with dots
     */
    public String title() {
        return title;
    }

    /**
     * Description of the series.
     *
     * @return one line
     */
    public String meaning() {
        return meaning;
    }

    /** Whether its labels are causes, of which there are few; other labels are names chosen by the application. */
    boolean isOfTheJvm() {
        return title.startsWith("jvm.");
    }

    /**
     * Name of the log in a record: at most 100 letters, digits and {@code _ - .}
     *
     * @param label distinguishes it within the series
     * @return name of a log
     */
    public String log(String label) {
        String name = label.isEmpty() ? title : title + "-" + label.replaceAll("[^a-zA-Z0-9_.-]", "_");
        String whole = name.endsWith(".hlog") ? name + "_" : name;
        return whole.length() <= 100 ? whole : whole.substring(0, 91) + "-" + Integer.toHexString(label.hashCode());
    }
}
