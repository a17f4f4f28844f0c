package dev.parallax.httpclient5;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * One attempt at a request: its timestamps and the phase it is in. Ends exactly once, whichever event comes first.
 *
 * <p>Callbacks on different threads follow one another in the order the client guarantees, which makes the stamps of
 * one thread visible to the next.
 */
final class Attempt {
    private static final int OPEN = 0;
    private static final int SUCCEEDED = 1;
    private static final int FAILED = 2;

    /** A CONNECT response with this status or above did not open the tunnel. */
    private static final int REFUSED_FROM = 300;

    private final Call call;
    private final ServerMetrics server;
    private final AtomicInteger state = new AtomicInteger(OPEN);
    private final long begunNs = System.nanoTime();

    private volatile Phase phase = Phase.CONNECT;
    private long phaseNs;

    /** Time spent in TLS handshakes inside the current connect; subtracted from it. */
    private long tlsNs;

    private long sentNs;
    private long headNs;
    private String method;
    private String status;
    private volatile boolean isComplete;

    /** When the connection was released before the end of the message. The exception that follows says why. */
    private volatile long droppedNs;

    private volatile boolean isDropped;

    private volatile boolean isRefused;

    /** The thread that is reading the body, if any. */
    private volatile Thread reader;

    Attempt(Call call, ServerMetrics server) {
        this.call = call;
        this.server = server;
    }

    boolean isOver() {
        return state.get() != OPEN;
    }

    /**
     * Returns whether the client's next step still belongs to this attempt, and ends the attempt if it does not. A
     * client that goes on with the same connection after a response has read that response to its end.
     */
    boolean tryContinue() {
        if (isDropped && isRefused) {
            // A proxy asked for credentials and closed the connection: the client asks again on another one.
            isDropped = false;
        } else if (isDropped) {
            fail(Failure.ABANDONED);
        } else if (phase == Phase.RECEIVE) {
            succeed();
        }
        return !isOver();
    }

    /** Whether the request was sent, even if no response has arrived. */
    boolean isSent() {
        return phase == Phase.WAIT || phase == Phase.RECEIVE;
    }

    boolean isSuccess() {
        return state.get() == SUCCEEDED;
    }

    void startPoolWait() {
        phase = Phase.POOL_WAIT;
        server.pendingCount().increment();
    }

    void markLeased() {
        server.pendingCount().decrement();
        server.waits().record(begunNs, System.nanoTime());
        call.borrow(server);
        phase = Phase.CONNECT;
    }

    void markLeaseFailed() {
        server.pendingCount().decrement();
    }

    /** If a proxy refused the tunnel and closed the connection, reconnecting to it continues the same connect. */
    void startConnect() {
        phase = Phase.CONNECT;
        if (!isRefused) {
            tlsNs = 0;
            phaseNs = System.nanoTime();
        }
    }

    /** Connected to the proxy; the connect continues until the server behind it is reached. */
    void startTunnel() {
        phase = Phase.CONNECT;
    }

    /** The proxy's response to CONNECT. After a refusal the client may try again with credentials. */
    void markTunnelResponse(int code) {
        isRefused = code >= REFUSED_FROM;
        if (!isRefused) {
            markConnected();
        }
    }

    void markConnected() {
        server.connects().record(phaseNs + tlsNs, System.nanoTime());
    }

    void startTls() {
        phase = Phase.TLS;
        phaseNs = System.nanoTime();
    }

    void markTlsDone() {
        server.handshakes().record(phaseNs, System.nanoTime());
    }

    /** A handshake inside the current connect has started, or has failed. */
    void enterTls() {
        phase = Phase.TLS;
    }

    /** A handshake inside the current connect has succeeded. */
    void recordHandshake(long sinceNs, long untilNs) {
        phase = Phase.CONNECT;
        tlsNs += untilNs - sinceNs;
        server.handshakes().record(sinceNs, untilNs);
    }

    void markSent(String method) {
        this.method = method;
        phase = Phase.WAIT;
        sentNs = System.nanoTime();
    }

    /** @param isComplete whether the response has no body */
    void markHead(int code, boolean isComplete) {
        headNs = System.nanoTime();
        this.isComplete = isComplete;
        status = ServerMetrics.text(code);
        phase = Phase.RECEIVE;
    }

    /** The message has ended. */
    void succeed() {
        if (phase != Phase.RECEIVE) {
            fail(isRefused ? Failure.CONNECT_FAILED : Failure.ABANDONED);
        } else if (state.compareAndSet(OPEN, SUCCEEDED)) {
            long now = System.nanoTime();
            server.responseHeads().record(sentNs, headNs);
            server.requests().row(method, status).record(sentNs, now);
            call.attemptEnded(now);
        }
    }

    void fail(Throwable thrown) {
        Phase failed = Failure.phaseOf(phase, thrown);
        fail(failed, Failure.typeOf(failed, thrown));
    }

    void fail(String type) {
        fail(phase, type);
    }

    private void fail(Phase phase, String type) {
        if (state.compareAndSet(OPEN, FAILED)) {
            long now = isDropped ? droppedNs : System.nanoTime();
            server.failures().row(phase.label, type).record(begunNs, now);
            call.attemptEnded(now);
        }
    }

    /** The connection was released before the end of the message. If an exception caused that, it follows. */
    void drop(boolean isWithinClient) {
        if (isComplete) {
            succeed();
            return;
        }
        if (!isDropped) {
            droppedNs = System.nanoTime();
            isDropped = true;
        }
        if (!isWithinClient && reader != Thread.currentThread()) {
            fail(Failure.ABANDONED);
        }
    }

    /** Ends the attempt if its connection was dropped and no exception followed. */
    void endIfDropped() {
        if (isDropped) {
            fail(isRefused ? Failure.CONNECT_FAILED : Failure.ABANDONED);
        }
    }

    void startRead() {
        reader = Thread.currentThread();
    }

    void endRead() {
        reader = null;
        endIfDropped();
    }
}
