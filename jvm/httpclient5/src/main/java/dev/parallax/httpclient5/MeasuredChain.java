package dev.parallax.httpclient5;

import java.io.IOException;
import org.apache.hc.client5.http.classic.ExecChain;
import org.apache.hc.client5.http.classic.ExecChainHandler;
import org.apache.hc.core5.concurrent.CancellableDependency;
import org.apache.hc.core5.http.ClassicHttpRequest;
import org.apache.hc.core5.http.ClassicHttpResponse;
import org.apache.hc.core5.http.HttpEntity;
import org.apache.hc.core5.http.HttpException;

/**
 * The outermost step of a classic client: starts a call and passes a measured runtime to the steps inside, through
 * which they lease and connect.
 */
record MeasuredChain(HttpClientMetrics metrics) implements ExecChainHandler {
    @Override
    public ClassicHttpResponse execute(ClassicHttpRequest request, ExecChain.Scope scope, ExecChain chain)
            throws IOException, HttpException {
        if (scope.execRuntime instanceof MeasuredRuntime runtime && runtime.reportsTo(metrics)) {
            // Installed twice in one client.
            return chain.proceed(request, scope);
        }
        Call call = new Call(metrics, scope.route.getTargetHost());
        CancellableDependency cancelled =
                scope.originalRequest instanceof CancellableDependency dependency ? dependency : null;
        MeasuredRuntime runtime = new MeasuredRuntime(scope.execRuntime, call, cancelled);
        ExecChain.Scope measured = new ExecChain.Scope(
                scope.exchangeId, scope.route, scope.originalRequest, runtime, scope.clientContext);
        ClassicHttpResponse response;
        try {
            response = chain.proceed(request, measured);
        } catch (Throwable thrown) {
            call.fail(thrown);
            throw thrown;
        }
        Attempt open = call.handOver();
        HttpEntity body = response.getEntity();
        if (open != null && body != null) {
            response.setEntity(new MeasuredEntity(body, open));
        }
        return response;
    }
}
