package dev.parallax.httpclient5;

import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.hc.core5.http.HttpHost;

/** One request as the application sees it: one attempt, or several in sequence. Recorded exactly once. */
final class Call {
    private final HttpClientMetrics metrics;
    private final HttpHost target;
    private final ServerMetrics server;
    private final AtomicBoolean isOver = new AtomicBoolean();
    private final long begunNs = System.nanoTime();

    /** The server whose connection is held; kept over attempts that reuse the connection. */
    private final AtomicReference<ServerMetrics> lender = new AtomicReference<>();

    private volatile Attempt attempt;
    private volatile int attempts;

    /** The client has returned the response; only the body may still be open. */
    private volatile boolean isHandedOver;

    /** The application has cancelled the call. The client may continue with it. */
    private volatile boolean isCancelled;

    Call(HttpClientMetrics metrics, HttpHost target) {
        this.metrics = metrics;
        this.target = target;
        server = metrics.server(target);
    }

    boolean reportsTo(HttpClientMetrics metrics) {
        return this.metrics == metrics;
    }

    /** For a client that runs a request outside the measured chain: this call ends with each of its attempts. */
    Call fork() {
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
            before.endIfDropped();
        }
        Attempt begun = new Attempt(this, server);
        attempts = attempts + 1;
        attempt = begun;
        return begun;
    }

    /**
     * The attempt in progress, or a new one on the same connection after a response that led to another request. After
     * a cancellation that the client does not act on, the steps that follow still belong to the cancelled attempt.
     */
    Attempt attempt() {
        Attempt now = attempt;
        if (now != null && (isCancelled || now.tryContinue())) {
            return now;
        }
        ServerMetrics current = lender.get();
        return begin(current == null ? server : current);
    }

    void borrow(ServerMetrics from) {
        giveBack();
        lender.set(from);
        from.activeCount().increment();
    }

    /** The connection was returned to the pool, after the end of the message or before it. */
    void giveBack() {
        ServerMetrics from = lender.getAndSet(null);
        if (from != null) {
            from.activeCount().decrement();
        }
    }

    void succeed() {
        Attempt now = attempt;
        if (now != null) {
            now.succeed();
        }
    }

    void drop() {
        Attempt now = attempt;
        if (now != null) {
            now.drop(!isHandedOver);
        }
    }

    void cancel() {
        Attempt now = attempt;
        if (now != null) {
            now.fail(Failure.CANCELLED);
        }
    }

    /** The application no longer waits for this call, whatever the client does about it. */
    void cancelAll() {
        isCancelled = true;
        cancel();
        end(System.nanoTime(), false);
    }

    /** Whether the request of the latest attempt was sent. */
    boolean isSent() {
        Attempt now = attempt;
        return now != null && now.isSent();
    }

    /** From here on the end of the attempt ends the call. Returns the open attempt, or null if it has ended. */
    Attempt handOver() {
        isHandedOver = true;
        Attempt now = attempt;
        if (now == null) {
            // No server was involved: the response came from a cache, for example.
            end(System.nanoTime(), true);
            return null;
        }
        now.endIfDropped();
        if (!now.isOver()) {
            return now;
        }
        end(System.nanoTime(), now.isSuccess());
        return null;
    }

    void fail(Throwable thrown) {
        Attempt now = attempt;
        if (now != null) {
            now.fail(thrown);
        }
        end(System.nanoTime(), false);
    }

    void attemptEnded(long nowNs) {
        if (isHandedOver) {
            end(nowNs, attempt.isSuccess());
        }
    }

    private void end(long nowNs, boolean isSuccess) {
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
