package dev.parallax.httpclient5;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * The stamps of one try, which say in which phase it is. Booked exactly once, whoever ends it first; the client's own
 * order of events makes the stamps of one thread visible to the next.
 */
final class Attempt {
    private static final int GOES_ON = 0;
    private static final int SUCCEEDED = 1;
    private static final int FAILED = 2;

    /** From this status on an answer to CONNECT is not the tunnel. */
    private static final int REFUSALS = 300;

    private final Call call;
    private final ServerMetrics server;
    private final AtomicInteger state = new AtomicInteger(GOES_ON);
    private final long begunNs = System.nanoTime();

    private volatile Phase phase = Phase.CONNECT;
    private long phaseNs;

    /** Of handshakes within the connect that goes on. */
    private long tlsNs;

    private long sentNs;
    private long headNs;
    private String method;
    private String status;
    private volatile boolean isWhole;

    /** When the connection went back without the message having ended: why, the next exception tells. */
    private volatile long droppedNs;

    private volatile boolean isDropped;

    private volatile boolean isRefused;

    /** Who reads the body now. */
    private volatile Thread reader;

    Attempt(Call call, ServerMetrics server) {
        this.call = call;
        this.server = server;
    }

    boolean isOver() {
        return state.get() != GOES_ON;
    }

    /**
     * Whether what the client does next is part of it. After its response it is not: the client has read that to the end,
     * where it goes on with the same connection.
     */
    boolean goesOn() {
        if (isDropped && isRefused) {
            // By a proxy that wants to know who asks, and closed: it is asked on another connection.
            isDropped = false;
        } else if (isDropped) {
            fails(Failure.ABANDONED);
        } else if (phase == Phase.RECEIVE) {
            succeeds();
        }
        return !isOver();
    }

    boolean isSuccess() {
        return state.get() == SUCCEEDED;
    }

    void waits() {
        phase = Phase.POOL_WAIT;
        server.pendingCount().increment();
    }

    void hasConnection() {
        server.pendingCount().decrement();
        server.waits().record(begunNs, System.nanoTime());
        call.borrows(server);
        phase = Phase.CONNECT;
    }

    void hasNoConnection() {
        server.pendingCount().decrement();
    }

    /** Once more to a proxy that refused the tunnel and closed, it is within the connect that goes on. */
    void connects() {
        phase = Phase.CONNECT;
        if (!isRefused) {
            tlsNs = 0;
            phaseNs = System.nanoTime();
        }
    }

    /** On the connection to a proxy: the connect goes on to the server behind it. */
    void tunnels() {
        phase = Phase.CONNECT;
    }

    /** By the proxy. One that refuses may be asked again, with credentials, which only the client knows. */
    void isAnswered(int code) {
        isRefused = code >= REFUSALS;
        if (!isRefused) {
            connected();
        }
    }

    void connected() {
        server.connects().record(phaseNs + tlsNs, System.nanoTime());
    }

    void shakesHands() {
        phase = Phase.TLS;
        phaseNs = System.nanoTime();
    }

    void shookHands() {
        server.handshakes().record(phaseNs, System.nanoTime());
    }

    /** A handshake of the connect that goes on begins, or has failed. */
    void isInHandshake() {
        phase = Phase.TLS;
    }

    /** A handshake of the connect that goes on. */
    void shookHands(long sinceNs, long untilNs) {
        phase = Phase.CONNECT;
        tlsNs += untilNs - sinceNs;
        server.handshakes().record(sinceNs, untilNs);
    }

    void sends(String method) {
        this.method = method;
        phase = Phase.WAIT;
        sentNs = System.nanoTime();
    }

    /** @param isWhole whether nothing comes after it */
    void hasHead(int code, boolean isWhole) {
        headNs = System.nanoTime();
        this.isWhole = isWhole;
        status = ServerMetrics.text(code);
        phase = Phase.RECEIVE;
    }

    /** The end of the message. */
    void succeeds() {
        if (phase != Phase.RECEIVE) {
            fails(isRefused ? Failure.CONNECT_FAILED : Failure.ABANDONED);
        } else if (state.compareAndSet(GOES_ON, SUCCEEDED)) {
            long now = System.nanoTime();
            server.heads().record(sentNs, headNs);
            server.requests().row(method, status).record(sentNs, now);
            call.attemptEnded(now);
        }
    }

    void fails(Throwable thrown) {
        Phase failed = Failure.phaseOf(phase, thrown);
        fails(failed, Failure.typeOf(failed, thrown));
    }

    void fails(String type) {
        fails(phase, type);
    }

    private void fails(Phase phase, String type) {
        if (state.compareAndSet(GOES_ON, FAILED)) {
            long now = isDropped ? droppedNs : System.nanoTime();
            server.failures().row(phase.label, type).record(begunNs, now);
            call.attemptEnded(now);
        }
    }

    /** The connection goes back before the end of the message. Where that comes of an exception, it is on its way. */
    void drops(boolean isWithinClient) {
        if (isWhole) {
            succeeds();
            return;
        }
        if (!isDropped) {
            droppedNs = System.nanoTime();
            isDropped = true;
        }
        if (!isWithinClient && reader != Thread.currentThread()) {
            fails(Failure.ABANDONED);
        }
    }

    /** No exception came. */
    void isLeft() {
        if (isDropped) {
            fails(isRefused ? Failure.CONNECT_FAILED : Failure.ABANDONED);
        }
    }

    void reads() {
        reader = Thread.currentThread();
    }

    void hasRead() {
        reader = null;
        isLeft();
    }
}
