package dev.parallax.vertx.metrics;

import dev.parallax.vertx.EventBus;
import dev.parallax.vertx.MeasuredMessages;
import dev.parallax.vertx.SeriesOptions;

/** The event bus. */
final class MeasuredEventBus extends MeasuredMessages {
    MeasuredEventBus(SeriesOptions options) {
        super(options);
    }

    @Override
    public EventBus.Handler handlerRegistered(String address, String replied) {
        return bus.register(address);
    }
}
