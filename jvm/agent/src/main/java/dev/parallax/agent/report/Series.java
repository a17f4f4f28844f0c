package dev.parallax.agent.report;

/** All that the agent measures, by the names of OpenTelemetry's semantic conventions where there is one. */
public enum Series {
    /** How late the meter looked. */
    HICCUP("jvm.hiccup", "lateness of each wake-up of the hiccup meter; a stall delays every wake-up due within it"),
    /** The causes of it. */
    HICCUP_PART("jvm.hiccup.part", "the part of a hiccup with this cause; the parts of a hiccup sum to its length"),
    /** How late the virtual thread looked. */
    CANARY("jvm.canary", "lateness of each wake-up of a virtual thread"),
    /** The causes of that. */
    CANARY_PART("jvm.canary.part", "the part of a virtual thread's hiccup with this cause"),
    /** How late the idle JVM looked. */
    CONTROL("jvm.control.hiccup", "hiccups of an idle JVM next to this one"),
    /** Safepoints. */
    PAUSE("jvm.pause", "each pause of the JVM, from its start until threads were resumed"),
    /** To a connection. */
    HTTP_WAIT("http.client.connection.wait_time", "wait for a pooled connection"),
    /** A new connection. */
    HTTP_CREATE("http.client.connection.create_time", "name lookup, TCP connect and tunnel; includes TLS if it is not timed separately"),
    /** TLS. */
    HTTP_TLS("http.client.connection.tls_time", "TLS handshakes that are timed separately"),
    /** Most timers' request. */
    HTTP_HEAD("http.client.response.head_time", "from sending the request to the head of the response"),
    /** The request. */
    HTTP_REQUEST("http.client.request.duration", "from sending the request to the end of the response body"),
    /** Attempts without an answer. */
    HTTP_FAILED("http.client.request.failed", "failed attempts, from start to failure"),
    /** What the caller sees. */
    HTTP_CALL("http.client.call.duration", "calls including all waits and attempts, to the end of the response body"),
    /** Calls without an answer. */
    HTTP_CALL_FAILED("http.client.call.failed", "calls without a complete response"),
    /** A number. */
    HTTP_PENDING("http.client.connection.pending_requests", "requests that wait for a connection"),
    /** A number. */
    HTTP_ACTIVE("http.client.open_connections.active", "connections in use"),
    /** The JDK's client, which tells no more. */
    JDK_REQUEST(
            "http.client.request.duration",
            "from handing a request to the JDK's client until its caller got the response, including waits for threads and connections,"
                    + " redirects, and the body unless it is streamed"),
    /** The same without a response. */
    JDK_FAILED("http.client.request.failed", "from handing a request to the JDK's client to its failure"),
    /** To a connection. */
    DB_WAIT("db.client.connection.wait_time", "wait for a pooled connection, without its test and the pool's suspension"),
    /** Liveness. */
    DB_TEST("db.client.connection.test_time", "test of an idle connection before it is lent"),
    /** Suspended pools. */
    DB_SUSPEND("db.client.connection.suspend_time", "wait while the pool was suspended"),
    /** In vain. */
    DB_TIMEOUT("db.client.connection.timeouts", "waits that timed out"),
    /** Otherwise in vain. */
    DB_FAILED("db.client.connection.failed", "borrows that failed for a reason other than a timeout"),
    /** To a connection, of a pool whose borrowers make connections themselves. */
    DB_WAIT_APART(
            "db.client.connection.wait_time",
            "wait for a pooled connection, without creating one; includes its test if the pool tests"),
    /** To a connection, of a pool that has nobody wait for one that is lent. */
    DB_WAIT_MADE(
            "db.client.connection.wait_time",
            "time until the pool had a connection, that is, created or tested one"),
    /** Lent. */
    DB_USE("db.client.connection.use_time", "from getting a connection to returning it"),
    /** A new connection. */
    DB_CREATE("db.client.connection.create_time", "creating a connection, including its set-up by the pool"),
    /** No new connection. */
    DB_CREATE_FAILED("db.client.connection.create_failed", "failed attempts to create a connection"),
    /** A number. */
    DB_PENDING("db.client.connection.pending_requests", "requests that wait for a connection"),
    /** A number. */
    DB_USED("db.client.connection.count.used", "connections in use"),
    /** A number. */
    DB_IDLE("db.client.connection.count.idle", "idle connections");

    /** The label of all that have no place of their own. */
    public static final String OTHER = "_OTHER";

    private final String title;
    private final String meaning;

    Series(String title, String meaning) {
        this.title = title;
        this.meaning = meaning;
    }

    /**
     * Its name.
     *
     * @return with dots
     */
    public String title() {
        return title;
    }

    /**
     * What it is of.
     *
     * @return one line
     */
    public String meaning() {
        return meaning;
    }

    /** Whether its labels are causes, of which there are few: elsewhere they are what the application names. */
    boolean isOfTheJvm() {
        return title.startsWith("jvm.");
    }

    /**
     * Its name in a record: of letters, digits and {@code _ - .} only, at most a hundred.
     *
     * @param label what tells it from others of the series
     * @return for a log
     */
    public String log(String label) {
        String name = label.isEmpty() ? title : title + "-" + label.replaceAll("[^a-zA-Z0-9_.-]", "_");
        String whole = name.endsWith(".hlog") ? name + "_" : name;
        return whole.length() <= 100 ? whole : whole.substring(0, 91) + "-" + Integer.toHexString(label.hashCode());
    }
}
