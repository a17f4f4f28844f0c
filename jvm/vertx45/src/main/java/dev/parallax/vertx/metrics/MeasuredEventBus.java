package dev.parallax.vertx45;

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
        return bus.registered(address);
    }
}
