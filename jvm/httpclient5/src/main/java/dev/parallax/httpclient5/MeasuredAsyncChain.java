package dev.parallax.httpclient5;

import java.io.IOException;
import org.apache.hc.client5.http.async.AsyncExecCallback;
import org.apache.hc.client5.http.async.AsyncExecChain;
import org.apache.hc.client5.http.async.AsyncExecChainHandler;
import org.apache.hc.core5.http.EntityDetails;
import org.apache.hc.core5.http.HttpException;
import org.apache.hc.core5.http.HttpRequest;
import org.apache.hc.core5.http.HttpResponse;
import org.apache.hc.core5.http.nio.AsyncDataConsumer;
import org.apache.hc.core5.http.nio.AsyncEntityProducer;

/** The outermost step of an asynchronous client: as {@link MeasuredChain}, with an end that is called back. */
record MeasuredAsyncChain(HttpClientMetrics metrics) implements AsyncExecChainHandler {
    @Override
    public void execute(
            HttpRequest request,
            AsyncEntityProducer body,
            AsyncExecChain.Scope scope,
            AsyncExecChain chain,
            AsyncExecCallback callback)
            throws HttpException, IOException {
        if (scope.execRuntime instanceof MeasuredAsyncRuntime runtime && runtime.isOf(metrics)) {
            // Installed twice in one client.
            chain.proceed(request, body, scope, callback);
            return;
        }
        Call call = new Call(metrics, scope.route.getTargetHost());
        AsyncExecChain.Scope measured = new AsyncExecChain.Scope(
                scope.exchangeId,
                scope.route,
                scope.originalRequest,
                scope.cancellableDependency,
                scope.clientContext,
                new MeasuredAsyncRuntime(scope.execRuntime, call),
                scope.scheduler,
                scope.execCount);
        try {
            chain.proceed(request, body, measured, new Ends(callback, call));
        } catch (Throwable thrown) {
            call.fails(thrown);
            call.givesBack();
            throw thrown;
        }
    }

    /**
     * The client gives the connection back by the runtime that it made itself, not by the one that is measured, but only
     * after one of these.
     */
    private record Ends(AsyncExecCallback callback, Call call) implements AsyncExecCallback {
        @Override
        public AsyncDataConsumer handleResponse(HttpResponse response, EntityDetails body)
                throws HttpException, IOException {
            // What is retried or redirected does not come here: this one is the application's, and tells it of its end.
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
            // All but what has no exchange with the server: a proxy's refusal to connect to it.
            call.succeeds();
            call.givesBack();
            callback.completed();
        }

        @Override
        public void failed(Exception cause) {
            call.fails(cause);
            call.givesBack();
            callback.failed(cause);
        }
    }
}
