package dev.parallax.httpclient5;

import java.io.IOException;
import org.apache.hc.client5.http.EndpointInfo;
import org.apache.hc.client5.http.HttpRoute;
import org.apache.hc.client5.http.classic.ExecRuntime;
import org.apache.hc.client5.http.protocol.HttpClientContext;
import org.apache.hc.core5.concurrent.Cancellable;
import org.apache.hc.core5.concurrent.CancellableDependency;
import org.apache.hc.core5.http.ClassicHttpRequest;
import org.apache.hc.core5.http.ClassicHttpResponse;
import org.apache.hc.core5.http.HttpEntity;
import org.apache.hc.core5.http.HttpException;
import org.apache.hc.core5.http.Method;
import org.apache.hc.core5.http.io.HttpResponseInformationCallback;
import org.apache.hc.core5.util.TimeValue;

/**
 * Sits between the execution chain of a classic client and its pool: leasing, connecting, exchanging and releasing pass
 * through here whatever the connection manager is. The client releases a connection at the end of the body, so the body
 * needs no watching.
 */
final class MeasuredRuntime implements ExecRuntime, Cancellable {
    private final ExecRuntime runtime;
    private final Call call;
    private final CancellableDependency request;

    /** Whether the server is reached through a tunnelling proxy, so that connecting takes more than one step. */
    private boolean isTunnelled;

    /** @param request of the application if it can be cancelled, else null */
    MeasuredRuntime(ExecRuntime runtime, Call call, CancellableDependency request) {
        this.runtime = runtime;
        this.call = call;
        this.request = request;
    }

    boolean reportsTo(HttpClientMetrics metrics) {
        return call.reportsTo(metrics);
    }

    @Override
    public void acquireEndpoint(String id, HttpRoute route, Object state, HttpClientContext context) throws IOException {
        isTunnelled = route.isTunnelled();
        Attempt attempt = call.begin(route.getTargetHost());
        attempt.startPoolWait();
        try {
            runtime.acquireEndpoint(id, route, state, context);
        } catch (Throwable thrown) {
            attempt.markLeaseFailed();
            fail(attempt, thrown);
            throw thrown;
        }
        attempt.markLeased();
        if (request != null && runtime instanceof Cancellable) {
            // The wrapped runtime registered itself for cancellation. Take its place and pass the cancellation on to
            // it.
            request.setDependency(this);
        }
    }

    @Override
    public void connectEndpoint(HttpClientContext context) throws IOException {
        Attempt attempt = call.attempt();
        attempt.startConnect();
        StampedTls.expect(context, attempt);
        try {
            runtime.connectEndpoint(context);
        } catch (Throwable thrown) {
            fail(attempt, thrown);
            throw thrown;
        } finally {
            StampedTls.expect(context, null);
        }
        if (!isTunnelled) {
            attempt.markConnected();
        }
    }

    @Override
    public void upgradeTls(HttpClientContext context) throws IOException {
        Attempt attempt = call.attempt();
        attempt.startTls();
        try {
            runtime.upgradeTls(context);
        } catch (Throwable thrown) {
            fail(attempt, thrown);
            throw thrown;
        }
        attempt.markTlsDone();
    }

    @Override
    public ClassicHttpResponse execute(String id, ClassicHttpRequest request, HttpClientContext context)
            throws IOException, HttpException {
        return execute(id, request, null, context);
    }

    @Override
    public ClassicHttpResponse execute(
            String id, ClassicHttpRequest request, HttpResponseInformationCallback informed, HttpClientContext context)
            throws IOException, HttpException {
        Attempt attempt = call.attempt();
        boolean isTunnel = Method.CONNECT.isSame(request.getMethod());
        if (isTunnel) {
            attempt.startTunnel();
        } else {
            attempt.markSent(request.getMethod());
        }
        ClassicHttpResponse response;
        try {
            response = runtime.execute(id, request, informed, context);
        } catch (Throwable thrown) {
            fail(attempt, thrown);
            throw thrown;
        }
        if (isTunnel) {
            attempt.markTunnelResponse(response.getCode());
        } else {
            HttpEntity body = response.getEntity();
            attempt.markHead(response.getCode(), body == null || body.getContentLength() == 0);
        }
        return response;
    }

    @Override
    public void releaseEndpoint() {
        call.succeed();
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
    public void disconnectEndpoint() throws IOException {
        call.drop();
        runtime.disconnectEndpoint();
    }

    @Override
    public boolean cancel() {
        call.cancel();
        call.giveBack();
        return runtime instanceof Cancellable cancellable && cancellable.cancel();
    }

    private void fail(Attempt attempt, Throwable thrown) {
        if (runtime.isExecutionAborted()) {
            attempt.fail(Failure.CANCELLED);
        } else {
            attempt.fail(thrown);
        }
    }

    @Override
    public boolean isExecutionAborted() {
        return runtime.isExecutionAborted();
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
    public boolean isConnectionReusable() {
        return runtime.isConnectionReusable();
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
    public ExecRuntime fork(CancellableDependency dependency) {
        return new MeasuredRuntime(runtime.fork(dependency), call.fork(), dependency);
    }
}
