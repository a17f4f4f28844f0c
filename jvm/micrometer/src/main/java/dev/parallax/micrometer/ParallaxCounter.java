package dev.parallax.micrometer;

import io.micrometer.core.instrument.AbstractMeter;
import io.micrometer.core.instrument.Counter;

/** A Micrometer counter on one of ours. */
final class ParallaxCounter extends AbstractMeter implements Counter {
    private final dev.parallax.recorder.Counter counter = new dev.parallax.recorder.Counter();

    ParallaxCounter(Id id) {
        super(id);
    }

    @Override
    public void increment() {
        counter.increment();
    }

    @Override
    public void increment(double amount) {
        counter.add(amount);
    }

    @Override
    public double count() {
        return counter.total();
    }
}
