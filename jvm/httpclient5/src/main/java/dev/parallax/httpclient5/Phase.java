package dev.parallax.httpclient5;

/** The phase in which an attempt ended. */
public enum Phase {
    /** Waiting for a pooled connection, including the client's check of one that was idle for long. */
    POOL_WAIT("pool_wait"),
    /** Name lookup, TCP connect and the tunnel through a proxy; includes TLS unless handshakes are timed. */
    CONNECT("connect"),
    /** TLS handshake. */
    TLS("tls"),
    /** From the first byte sent to the head of the response. */
    WAIT("wait"),
    /** From the head of the response to the end of its body. */
    RECEIVE("receive");

    /** Value of the label {@code parallax.phase}. */
    final String label;

    Phase(String label) {
        this.label = label;
    }
}
