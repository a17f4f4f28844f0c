package dev.parallax.httpclient5;

import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.hc.core5.http.HttpHost;

/** What an application asked for: one attempt or several, one after the other. Booked exactly once. */
final class Call {
    private final HttpClientMetrics metrics;
    private final HttpHost target;
    private final ServerMetrics server;
    private final AtomicBoolean isOver = new AtomicBoolean();
    private final long begunNs = System.nanoTime();

    /** Whose connection is held; over several attempts where they follow each other on the same one. */
    private final AtomicReference<ServerMetrics> lender = new AtomicReference<>();

    private volatile Attempt attempt;
    private volatile int attempts;

    /** The client is done with it, but for the body. */
    private volatile boolean isHandedOver;

    Call(HttpClientMetrics metrics, HttpHost target) {
        this.metrics = metrics;
        this.target = target;
        server = metrics.server(target);
    }

    boolean isOf(HttpClientMetrics metrics) {
        return this.metrics == metrics;
    }

    /** One of a client that has no call around it: it ends with each of its attempts. */
    Call forked() {
        Call call = new Call(metrics, target);
        call.isHandedOver = true;
        return call;
    }

    Attempt begin(HttpHost target) {
        return begin(metrics.server(target));
    }

    private Attempt begin(ServerMetrics server) {
        Attempt before = attempt;
        if (before != null) {
            before.isLeft();
        }
        Attempt begun = new Attempt(this, server);
        attempts = attempts + 1;
        attempt = begun;
        return begun;
    }

    /** The one that goes on, or one on the same connection after an answer that asked for another. */
    Attempt attempt() {
        Attempt now = attempt;
        if (now != null && now.goesOn()) {
            return now;
        }
        ServerMetrics lends = lender.get();
        return begin(lends == null ? server : lends);
    }

    void borrows(ServerMetrics from) {
        givesBack();
        lender.set(from);
        from.activeCount().increment();
    }

    /** The connection went back, after the end of the message or before it. */
    void givesBack() {
        ServerMetrics from = lender.getAndSet(null);
        if (from != null) {
            from.activeCount().decrement();
        }
    }

    void succeeds() {
        Attempt now = attempt;
        if (now != null) {
            now.succeeds();
        }
    }

    void drops() {
        Attempt now = attempt;
        if (now != null) {
            now.drops(!isHandedOver);
        }
    }

    void isCancelled() {
        Attempt now = attempt;
        if (now != null) {
            now.fails(Failure.CANCELLED);
        }
    }

    /** From here on the end of the attempt is that of the call. Returns it, or null where it has ended. */
    Attempt handOver() {
        isHandedOver = true;
        Attempt now = attempt;
        if (now == null) {
            // Answered without a server: from a cache, say.
            ends(System.nanoTime(), true);
            return null;
        }
        now.isLeft();
        if (!now.isOver()) {
            return now;
        }
        ends(System.nanoTime(), now.isSuccess());
        return null;
    }

    void fails(Throwable thrown) {
        Attempt now = attempt;
        if (now != null) {
            now.fails(thrown);
        }
        ends(System.nanoTime(), false);
    }

    void attemptEnded(long nowNs) {
        if (isHandedOver) {
            ends(nowNs, attempt.isSuccess());
        }
    }

    private void ends(long nowNs, boolean isSuccess) {
        if (!isOver.compareAndSet(false, true)) {
            return;
        }
        if (isSuccess) {
            server.calls().row(ServerMetrics.text(Math.max(0, attempts - 1))).record(begunNs, nowNs);
        } else {
            server.failedCalls().record(begunNs, nowNs);
        }
    }
}
