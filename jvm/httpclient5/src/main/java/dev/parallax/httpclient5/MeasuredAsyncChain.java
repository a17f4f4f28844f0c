package dev.parallax.httpclient5;

import java.io.IOException;
import org.apache.hc.client5.http.async.AsyncExecCallback;
import org.apache.hc.client5.http.async.AsyncExecChain;
import org.apache.hc.client5.http.async.AsyncExecChainHandler;
import org.apache.hc.core5.concurrent.Cancellable;
import org.apache.hc.core5.concurrent.CancellableDependency;
import org.apache.hc.core5.http.EntityDetails;
import org.apache.hc.core5.http.HttpException;
import org.apache.hc.core5.http.HttpRequest;
import org.apache.hc.core5.http.HttpResponse;
import org.apache.hc.core5.http.nio.AsyncDataConsumer;
import org.apache.hc.core5.http.nio.AsyncEntityProducer;

/** The outermost step of an asynchronous client: like {@link MeasuredChain}, ended by callbacks. */
record MeasuredAsyncChain(HttpClientMetrics metrics) implements AsyncExecChainHandler {
    @Override
    public void execute(
            HttpRequest request,
            AsyncEntityProducer body,
            AsyncExecChain.Scope scope,
            AsyncExecChain chain,
            AsyncExecCallback callback)
            throws HttpException, IOException {
        if (scope.execRuntime instanceof MeasuredAsyncRuntime runtime && runtime.reportsTo(metrics)) {
            // Installed twice in one client.
            chain.proceed(request, body, scope, callback);
            return;
        }
        Call call = new Call(metrics, scope.route.getTargetHost());
        MeasuredAsyncRuntime within = new MeasuredAsyncRuntime(scope.execRuntime, call);
        AsyncExecChain.Scope measured = new AsyncExecChain.Scope(
                scope.exchangeId,
                scope.route,
                scope.originalRequest,
                new Cancellation(scope.cancellableDependency, within),
                scope.clientContext,
                within,
                scope.scheduler,
                scope.execCount);
        try {
            chain.proceed(request, body, measured, new CallEnd(callback, call));
        } catch (Throwable thrown) {
            call.fail(thrown);
            call.giveBack();
            throw thrown;
        }
    }

    /**
     * What the application cancels. The client remembers one step to cancel, the last one that was stored, which is one
     * that has already ended if the thread that asked for a connection continues only after the thread that sends. The
     * exchange is then never notified, and it never ends if the client is closed.
     */
    private record Cancellation(CancellableDependency future, MeasuredAsyncRuntime runtime)
            implements CancellableDependency {
        @Override
        public void setDependency(Cancellable step) {
            future.setDependency(() -> {
                try {
                    return step.cancel();
                } finally {
                    record();
                }
            });
            // A step that is stored during the cancellation is not cancelled.
            record();
        }

        /** Called after the step itself, which reports its phase. A future that has completed also cancels a step. */
        private void record() {
            if (future.isCancelled()) {
                runtime.cancelCall();
            }
        }

        @Override
        public boolean isCancelled() {
            return future.isCancelled();
        }

        @Override
        public boolean cancel() {
            return future.cancel();
        }
    }

    /**
     * The client returns the connection through its own runtime, not through the measured one, but only after one of
     * these callbacks.
     */
    private record CallEnd(AsyncExecCallback callback, Call call) implements AsyncExecCallback {
        @Override
        public AsyncDataConsumer handleResponse(HttpResponse response, EntityDetails body)
                throws HttpException, IOException {
            // Responses that are retried or redirected do not get here: this one goes to the application and its end
            // ends the call.
            call.handOver();
            return callback.handleResponse(response, body);
        }

        @Override
        public void handleInformationResponse(HttpResponse response) throws HttpException, IOException {
            callback.handleInformationResponse(response);
        }

        @Override
        public void completed() {
            call.handOver();
            // Has an effect only if no exchange with the server took place: a proxy refused to connect to it.
            call.succeed();
            call.giveBack();
            callback.completed();
        }

        @Override
        public void failed(Exception cause) {
            call.fail(cause);
            call.giveBack();
            callback.failed(cause);
        }
    }
}
