package dev.parallax.agent.report;

/** All that the agent measures, by the names of OpenTelemetry's semantic conventions where there is one. */
public enum Series {
    /** How late the meter looked. */
    HICCUP("jvm.hiccup", "how late each look of the hiccup meter was; a stall takes each look that was due within it"),
    /** The causes of it. */
    HICCUP_PART("jvm.hiccup.part", "the part of a hiccup that had this cause; the parts of a hiccup sum to it"),
    /** How late the virtual thread looked. */
    CANARY("jvm.canary", "how late each look of a virtual thread was"),
    /** The causes of that. */
    CANARY_PART("jvm.canary.part", "the part of a virtual thread's hiccup that had this cause"),
    /** How late the idle JVM looked. */
    CONTROL("jvm.control.hiccup", "the hiccups of an idle JVM beside this one"),
    /** Safepoints. */
    PAUSE("jvm.pause", "each pause of the JVM, from its begin until threads were let go"),
    /** To a connection. */
    HTTP_WAIT("http.client.connection.wait_time", "asking the pool until it gave a connection"),
    /** A new connection. */
    HTTP_CREATE("http.client.connection.create_time", "name lookup, TCP, tunnel, and TLS where it is not told apart"),
    /** TLS. */
    HTTP_TLS("http.client.connection.tls_time", "handshakes that were told apart"),
    /** Most timers' request. */
    HTTP_HEAD("http.client.response.head_time", "sending the request on a connection until the head of the response"),
    /** The request. */
    HTTP_REQUEST("http.client.request.duration", "sending the request on a connection until the end of the body"),
    /** Attempts without an answer. */
    HTTP_FAILED("http.client.request.failed", "attempts that failed, from their begin to their failure"),
    /** What the caller sees. */
    HTTP_CALL("http.client.call.duration", "calls with all waits and attempts, until the end of the body"),
    /** Calls without an answer. */
    HTTP_CALL_FAILED("http.client.call.failed", "calls without a response or without all of it"),
    /** A number. */
    HTTP_PENDING("http.client.connection.pending_requests", "how many wait for a connection"),
    /** A number. */
    HTTP_ACTIVE("http.client.open_connections.active", "how many connections are lent"),
    /** The JDK's client, which tells no more. */
    JDK_REQUEST(
            "http.client.request.duration",
            "handing a request to the JDK's client until its caller had the response: waits for threads and connections,"
                    + " redirects, and the body unless its handler streams it"),
    /** The same without a response. */
    JDK_FAILED("http.client.request.failed", "handing a request to the JDK's client until it failed"),
    /** To a connection. */
    DB_WAIT("db.client.connection.wait_time", "asking the pool until a connection was free, without test and suspension"),
    /** Liveness. */
    DB_TEST("db.client.connection.test_time", "asking the database whether an idle connection lives"),
    /** Suspended pools. */
    DB_SUSPEND("db.client.connection.suspend_time", "asking until the pool was not suspended"),
    /** In vain. */
    DB_TIMEOUT("db.client.connection.timeouts", "waits that ended without a connection"),
    /** Otherwise in vain. */
    DB_FAILED("db.client.connection.failed", "borrowings that failed for another reason"),
    /** To a connection, of a pool whose borrowers make connections themselves. */
    DB_WAIT_APART(
            "db.client.connection.wait_time",
            "asking the pool until a connection was free, without making one, with its test where the pool tests"),
    /** To a connection, of a pool that has nobody wait for one that is lent. */
    DB_WAIT_MADE(
            "db.client.connection.wait_time",
            "asking the pool until a connection was there, which is making or testing one"),
    /** Lent. */
    DB_USE("db.client.connection.use_time", "having a connection until it was given back"),
    /** A new connection. */
    DB_CREATE("db.client.connection.create_time", "making a connection, with its set-up by the pool"),
    /** No new connection. */
    DB_CREATE_FAILED("db.client.connection.create_failed", "failing to make a connection"),
    /** A number. */
    DB_PENDING("db.client.connection.pending_requests", "how many wait for a connection"),
    /** A number. */
    DB_USED("db.client.connection.count.used", "how many connections are lent"),
    /** A number. */
    DB_IDLE("db.client.connection.count.idle", "how many connections are idle");

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
