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
 * The seam between the chain of a classic client and its pool: whatever manager is behind, leasing, connecting, exchanging
 * and giving back pass here. The client gives a connection back at the end of the body, so nothing has to watch for that.
 */
final class MeasuredRuntime implements ExecRuntime, Cancellable {
    private final ExecRuntime runtime;
    private final Call call;
    private final CancellableDependency request;

    /** Whether the server is behind a proxy that only passes on, so that to connect is more than one step. */
    private boolean isTunnelled;

    /** @param request as the application gave it where it can be cancelled, else null */
    MeasuredRuntime(ExecRuntime runtime, Call call, CancellableDependency request) {
        this.runtime = runtime;
        this.call = call;
        this.request = request;
    }

    boolean isOf(HttpClientMetrics metrics) {
        return call.isOf(metrics);
    }

    @Override
    public void acquireEndpoint(String id, HttpRoute route, Object state, HttpClientContext context) throws IOException {
        isTunnelled = route.isTunnelled();
        Attempt attempt = call.begin(route.getTargetHost());
        attempt.waits();
        try {
            runtime.acquireEndpoint(id, route, state, context);
        } catch (Throwable thrown) {
            attempt.hasNoConnection();
            fails(attempt, thrown);
            throw thrown;
        }
        attempt.hasConnection();
        if (request != null && runtime instanceof Cancellable) {
            // It made itself the one to be told of a cancellation. From here on we are told, and tell it.
            request.setDependency(this);
        }
    }

    @Override
    public void connectEndpoint(HttpClientContext context) throws IOException {
        Attempt attempt = call.attempt();
        attempt.connects();
        StampedTls.expect(context, attempt);
        try {
            runtime.connectEndpoint(context);
        } catch (Throwable thrown) {
            fails(attempt, thrown);
            throw thrown;
        } finally {
            StampedTls.expect(context, null);
        }
        if (!isTunnelled) {
            attempt.connected();
        }
    }

    @Override
    public void upgradeTls(HttpClientContext context) throws IOException {
        Attempt attempt = call.attempt();
        attempt.shakesHands();
        try {
            runtime.upgradeTls(context);
        } catch (Throwable thrown) {
            fails(attempt, thrown);
            throw thrown;
        }
        attempt.shookHands();
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
            attempt.tunnels();
        } else {
            attempt.sends(request.getMethod());
        }
        ClassicHttpResponse response;
        try {
            response = runtime.execute(id, request, informed, context);
        } catch (Throwable thrown) {
            fails(attempt, thrown);
            throw thrown;
        }
        if (isTunnel) {
            attempt.isAnswered(response.getCode());
        } else {
            HttpEntity body = response.getEntity();
            attempt.hasHead(response.getCode(), body == null || body.getContentLength() == 0);
        }
        return response;
    }

    @Override
    public void releaseEndpoint() {
        call.succeeds();
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
    public void disconnectEndpoint() throws IOException {
        call.drops();
        runtime.disconnectEndpoint();
    }

    @Override
    public boolean cancel() {
        call.isCancelled();
        call.givesBack();
        return runtime instanceof Cancellable cancellable && cancellable.cancel();
    }

    private void fails(Attempt attempt, Throwable thrown) {
        if (runtime.isExecutionAborted()) {
            attempt.fails(Failure.CANCELLED);
        } else {
            attempt.fails(thrown);
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
        return new MeasuredRuntime(runtime.fork(dependency), call.forked(), dependency);
    }
}
