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

/** The seam between the chain of an asynchronous client and its pool: as {@link MeasuredRuntime}, with callbacks. */
final class MeasuredAsyncRuntime implements AsyncExecRuntime {
    private final AsyncExecRuntime runtime;
    private final Call call;

    /** Whether the server is behind a proxy that only passes on, so that to connect is more than one step. */
    private volatile boolean isTunnelled;

    MeasuredAsyncRuntime(AsyncExecRuntime runtime, Call call) {
        this.runtime = runtime;
        this.call = call;
    }

    boolean isOf(HttpClientMetrics metrics) {
        return call.isOf(metrics);
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
        attempt.waits();
        Step lease = new Step(attempt, callback) {
            @Override
            void succeeds() {
                attempt.hasConnection();
            }

            @Override
            void fails() {
                attempt.hasNoConnection();
            }
        };
        try {
            return runtime.acquireEndpoint(id, route, state, context, lease);
        } catch (Throwable thrown) {
            lease.failsOnce();
            attempt.fails(thrown);
            throw thrown;
        }
    }

    @Override
    public Cancellable connectEndpoint(HttpClientContext context, FutureCallback<AsyncExecRuntime> callback) {
        Attempt attempt = call.attempt();
        attempt.connects();
        return runtime.connectEndpoint(context, new Step(attempt, callback) {
            @Override
            void succeeds() {
                StampedTls.take(attempt);
                if (!isTunnelled) {
                    attempt.connected();
                }
            }

            @Override
            void fails() {
                StampedTls.takeFailed(attempt);
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
        attempt.shakesHands();
        runtime.upgradeTls(context, new Step(attempt, callback) {
            @Override
            void succeeds() {
                attempt.shookHands();
            }
        });
    }

    @Override
    public Cancellable execute(String id, AsyncClientExchangeHandler exchange, HttpClientContext context) {
        return runtime.execute(id, new MeasuredExchange(exchange, call), context);
    }

    @Override
    public void releaseEndpoint() {
        call.givesBack();
        runtime.releaseEndpoint();
    }

    @Override
    public void discardEndpoint() {
        call.drops();
        call.givesBack();
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
        return new MeasuredAsyncRuntime(runtime.fork(), call.forked());
    }

    /** The end of one step; who asked for it is handed this runtime, not the one within. */
    private abstract class Step implements FutureCallback<AsyncExecRuntime> {
        private final Attempt attempt;
        private final FutureCallback<AsyncExecRuntime> callback;
        private final AtomicBoolean hasEnded = new AtomicBoolean();

        Step(Attempt attempt, FutureCallback<AsyncExecRuntime> callback) {
            this.attempt = attempt;
            this.callback = callback;
        }

        abstract void succeeds();

        void fails() {}

        final void failsOnce() {
            if (hasEnded.compareAndSet(false, true)) {
                fails();
            }
        }

        @Override
        public void completed(AsyncExecRuntime within) {
            if (hasEnded.compareAndSet(false, true)) {
                succeeds();
            }
            if (callback != null) {
                callback.completed(MeasuredAsyncRuntime.this);
            }
        }

        @Override
        public void failed(Exception thrown) {
            failsOnce();
            attempt.fails(thrown);
            if (callback != null) {
                callback.failed(thrown);
            }
        }

        @Override
        public void cancelled() {
            failsOnce();
            attempt.fails(Failure.CANCELLED);
            if (callback != null) {
                callback.cancelled();
            }
        }
    }
}
