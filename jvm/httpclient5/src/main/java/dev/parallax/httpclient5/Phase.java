package dev.parallax.httpclient5;

/** Where an attempt was when it ended. */
public enum Phase {
    /** Waiting for a connection of the pool; testing one that was idle for long is part of it. */
    POOL_WAIT("pool_wait"),
    /** Name lookup, TCP, and the tunnel through a proxy; TLS as well where the handshake is not stamped. */
    CONNECT("connect"),
    /** The handshake. */
    TLS("tls"),
    /** From the first byte sent to the head of the response. */
    WAIT("wait"),
    /** From the head of the response to the end of its body. */
    RECEIVE("receive");

    /** As in the label {@code parallax.phase}. */
    final String label;

    Phase(String label) {
        this.label = label;
    }
}
