package dev.parallax.httpclient5;

import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.hc.client5.http.EndpointInfo;
import org.apache.hc.client5.http.HttpRoute;
import org.apache.hc.client5.http.async.AsyncExecRuntime;
import org.apache.hc.client5.http.protocol.HttpClientContext;
import org.apache.hc.core5.concurrent.Cancellable;
import org.apache.hc.core5.concurrent.FutureCallback;
import org.apache.hc.core5.http.nio.AsyncClientExchangeHandler;
import org.apache.hc.core5.util.TimeValue;

/**
 * Sits between the execution chain of an asynchronous client and its pool: like {@link MeasuredRuntime}, with
 * callbacks.
 */
final class MeasuredAsyncRuntime implements AsyncExecRuntime {
    private final AsyncExecRuntime runtime;
    private final Call call;

    /** Whether the server is reached through a tunnelling proxy, so that connecting takes more than one step. */
    private volatile boolean isTunnelled;

    MeasuredAsyncRuntime(AsyncExecRuntime runtime, Call call) {
        this.runtime = runtime;
        this.call = call;
    }

    boolean reportsTo(HttpClientMetrics metrics) {
        return call.reportsTo(metrics);
    }

    /** The application has cancelled the call. A connection that is still open stays in use until the client returns it. */
    void cancelCall() {
        call.cancelAll();
        if (call.isSent() && !runtime.isEndpointConnected()) {
            call.giveBack();
        }
    }

    @Override
    public Cancellable acquireEndpoint(
            String id,
            HttpRoute route,
            Object state,
            HttpClientContext context,
            FutureCallback<AsyncExecRuntime> callback) {
        isTunnelled = route.isTunnelled();
        Attempt attempt = call.begin(route.getTargetHost());
        attempt.startPoolWait();
        Step lease = new Step(attempt, callback) {
            @Override
            void onSuccess() {
                attempt.markLeased();
            }

            @Override
            void onFailure() {
                attempt.markLeaseFailed();
            }
        };
        try {
            return runtime.acquireEndpoint(id, route, state, context, lease);
        } catch (Throwable thrown) {
            lease.failOnce();
            attempt.fail(thrown);
            throw thrown;
        }
    }

    @Override
    public Cancellable connectEndpoint(HttpClientContext context, FutureCallback<AsyncExecRuntime> callback) {
        Attempt attempt = call.attempt();
        attempt.startConnect();
        return runtime.connectEndpoint(context, new Step(attempt, callback) {
            @Override
            void onSuccess() {
                StampedTls.recordEnded(attempt);
                if (!isTunnelled) {
                    attempt.markConnected();
                }
            }

            @Override
            void onFailure() {
                StampedTls.recordFailed(attempt);
            }
        });
    }

    @Override
    public void upgradeTls(HttpClientContext context) {
        upgradeTls(context, null);
    }

    @Override
    public void upgradeTls(HttpClientContext context, FutureCallback<AsyncExecRuntime> callback) {
        Attempt attempt = call.attempt();
        attempt.startTls();
        runtime.upgradeTls(context, new Step(attempt, callback) {
            @Override
            void onSuccess() {
                attempt.markTlsDone();
            }
        });
    }

    @Override
    public Cancellable execute(String id, AsyncClientExchangeHandler exchange, HttpClientContext context) {
        return runtime.execute(id, new MeasuredExchange(exchange, call), context);
    }

    @Override
    public void releaseEndpoint() {
        call.giveBack();
        runtime.releaseEndpoint();
    }

    @Override
    public void discardEndpoint() {
        call.drop();
        call.giveBack();
        runtime.discardEndpoint();
    }

    @Override
    public void disconnectEndpoint() {
        runtime.disconnectEndpoint();
    }

    @Override
    public boolean isEndpointAcquired() {
        return runtime.isEndpointAcquired();
    }

    @Override
    public boolean isEndpointConnected() {
        return runtime.isEndpointConnected();
    }

    @Override
    public EndpointInfo getEndpointInfo() {
        return runtime.getEndpointInfo();
    }

    @Override
    public boolean validateConnection() {
        return runtime.validateConnection();
    }

    @Override
    public void markConnectionReusable(Object state, TimeValue validityTime) {
        runtime.markConnectionReusable(state, validityTime);
    }

    @Override
    public void markConnectionNonReusable() {
        runtime.markConnectionNonReusable();
    }

    @Override
    public AsyncExecRuntime fork() {
        return new MeasuredAsyncRuntime(runtime.fork(), call.fork());
    }

    /** The end of one step. The callback gets this runtime, not the wrapped one. */
    private abstract class Step implements FutureCallback<AsyncExecRuntime> {
        private final Attempt attempt;
        private final FutureCallback<AsyncExecRuntime> callback;
        private final AtomicBoolean hasEnded = new AtomicBoolean();

        Step(Attempt attempt, FutureCallback<AsyncExecRuntime> callback) {
            this.attempt = attempt;
            this.callback = callback;
        }

        abstract void onSuccess();

        void onFailure() {}

        final void failOnce() {
            if (hasEnded.compareAndSet(false, true)) {
                onFailure();
            }
        }

        @Override
        public void completed(AsyncExecRuntime within) {
            if (hasEnded.compareAndSet(false, true)) {
                onSuccess();
            }
            if (callback != null) {
                callback.completed(MeasuredAsyncRuntime.this);
            }
        }

        @Override
        public void failed(Exception thrown) {
            failOnce();
            attempt.fail(thrown);
            if (callback != null) {
                callback.failed(thrown);
            }
        }

        @Override
        public void cancelled() {
            failOnce();
            attempt.fail(Failure.CANCELLED);
            if (callback != null) {
                callback.cancelled();
            }
        }
    }
}
