package dev.parallax.httpclient5;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import org.apache.hc.core5.http.EntityDetails;
import org.apache.hc.core5.http.Header;
import org.apache.hc.core5.http.HttpException;
import org.apache.hc.core5.http.HttpRequest;
import org.apache.hc.core5.http.HttpResponse;
import org.apache.hc.core5.http.Method;
import org.apache.hc.core5.http.nio.AsyncClientExchangeHandler;
import org.apache.hc.core5.http.nio.CapacityChannel;
import org.apache.hc.core5.http.nio.DataStreamChannel;
import org.apache.hc.core5.http.nio.RequestChannel;
import org.apache.hc.core5.http.protocol.HttpContext;

/**
 * One request and its response on a leased connection, or the request that opens a tunnel, which is part of the
 * connect.
 */
final class MeasuredExchange implements AsyncClientExchangeHandler {
    private final AsyncClientExchangeHandler exchange;
    private final Attempt attempt;
    private volatile boolean isTunnel;

    MeasuredExchange(AsyncClientExchangeHandler exchange, Call call) {
        this.exchange = exchange;
        attempt = call.attempt();
        attempt.markSent("");
    }

    @Override
    public void produceRequest(RequestChannel channel, HttpContext context) throws HttpException, IOException {
        exchange.produceRequest((request, body, c) -> {
            markSent(request);
            channel.sendRequest(request, body, c);
        }, context);
    }

    private void markSent(HttpRequest request) {
        isTunnel = Method.CONNECT.isSame(request.getMethod());
        if (isTunnel) {
            attempt.startTunnel();
        } else {
            attempt.markSent(request.getMethod());
        }
    }

    @Override
    public void consumeResponse(HttpResponse response, EntityDetails body, HttpContext context)
            throws HttpException, IOException {
        if (isTunnel) {
            attempt.markTunnelResponse(response.getCode());
        } else {
            attempt.markHead(response.getCode(), body == null);
            if (body == null) {
                attempt.succeed();
            }
        }
        exchange.consumeResponse(response, body, context);
    }

    @Override
    public void streamEnd(List<? extends Header> trailers) throws HttpException, IOException {
        if (!isTunnel) {
            attempt.succeed();
        }
        exchange.streamEnd(trailers);
    }

    @Override
    public void failed(Exception cause) {
        attempt.fail(cause);
        exchange.failed(cause);
    }

    @Override
    public void cancel() {
        attempt.fail(Failure.CANCELLED);
        exchange.cancel();
    }

    @Override
    public void consumeInformation(HttpResponse response, HttpContext context) throws HttpException, IOException {
        exchange.consumeInformation(response, context);
    }

    @Override
    public int available() {
        return exchange.available();
    }

    @Override
    public void produce(DataStreamChannel channel) throws IOException {
        exchange.produce(channel);
    }

    @Override
    public void updateCapacity(CapacityChannel channel) throws IOException {
        exchange.updateCapacity(channel);
    }

    @Override
    public void consume(ByteBuffer from) throws IOException {
        exchange.consume(from);
    }

    @Override
    public void releaseResources() {
        exchange.releaseResources();
    }
}
