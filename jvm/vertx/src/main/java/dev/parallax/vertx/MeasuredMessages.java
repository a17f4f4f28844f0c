package dev.parallax.vertx;

import io.vertx.core.eventbus.Message;
import io.vertx.core.eventbus.ReplyFailure;
import io.vertx.core.spi.metrics.EventBusMetrics;

/**
 * Messages of the event bus; a version's own class adds how handlers come there. Handlers of Vert.x itself have no metric.
 */
public abstract class MeasuredMessages implements EventBusMetrics<EventBus.Handler> {
    /** All of one application. */
    protected final EventBus bus;

    /**
     * Of one application.
     *
     * @param options as of all
     */
    protected MeasuredMessages(SeriesOptions options) {
        bus = new EventBus(options);
    }

    @Override
    public void handlerUnregistered(EventBus.Handler handler) {
        if (handler != null) {
            handler.unregistered();
        }
    }

    @Override
    public void messageDelivered(EventBus.Handler handler, boolean isLocal) {
        if (handler != null) {
            handler.delivered(isLocal);
        }
    }

    @Override
    public void discardMessage(EventBus.Handler handler, boolean isLocal, Message<?> message) {
        if (handler != null) {
            handler.discarded(isLocal);
        }
    }

    @Override
    public void messageSent(String address, boolean isPublished, boolean isLocal, boolean isRemote) {
        bus.sent(address, isPublished, isLocal);
    }

    @Override
    public void messageReceived(String address, boolean isPublished, boolean isLocal, int handlers) {
        bus.received(address, isLocal, handlers);
    }

    @Override
    public void messageWritten(String address, int bytes) {
        bus.written(address, bytes);
    }

    @Override
    public void messageRead(String address, int bytes) {
        bus.read(address, bytes);
    }

    @Override
    public void replyFailure(String address, ReplyFailure failure) {
        bus.replyFailed(address, failure.name());
    }
}
