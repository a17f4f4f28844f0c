package dev.parallax.vertx;

import io.vertx.core.eventbus.Message;
import io.vertx.core.eventbus.ReplyFailure;
import io.vertx.core.spi.metrics.EventBusMetrics;

/** Metrics of the event bus; a version's class adds the registration of handlers. Internal handlers have no metric. */
public abstract class MeasuredMessages implements EventBusMetrics<EventBus.Handler> {
    /** Metrics of one Vert.x instance. */
    protected final EventBus bus;

    /**
     * Creates the metrics of one Vert.x instance.
     *
     * @param options what is measured
     */
    protected MeasuredMessages(SeriesOptions options) {
        bus = new EventBus(options);
    }

    @Override
    public void handlerUnregistered(EventBus.Handler handler) {
        if (handler != null) {
            handler.unregister();
        }
    }

    @Override
    public void messageDelivered(EventBus.Handler handler, boolean isLocal) {
        if (handler != null) {
            handler.recordDelivered(isLocal);
        }
    }

    @Override
    public void discardMessage(EventBus.Handler handler, boolean isLocal, Message<?> message) {
        if (handler != null) {
            handler.recordDiscarded(isLocal);
        }
    }

    @Override
    public void messageSent(String address, boolean isPublished, boolean isLocal, boolean isRemote) {
        bus.recordSent(address, isPublished, isLocal);
    }

    @Override
    public void messageReceived(String address, boolean isPublished, boolean isLocal, int handlers) {
        bus.recordReceived(address, isLocal, handlers);
    }

    @Override
    public void messageWritten(String address, int bytes) {
        bus.recordWritten(address, bytes);
    }

    @Override
    public void messageRead(String address, int bytes) {
        bus.recordRead(address, bytes);
    }

    @Override
    public void replyFailure(String address, ReplyFailure failure) {
        bus.recordReplyFailure(address, failure.name());
    }
}
