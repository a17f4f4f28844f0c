package dev.parallax.micrometer;

import dev.parallax.recorder.Catalog;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.MockClock;
import io.micrometer.core.tck.MeterRegistryCompatibilityKit;
import java.time.Duration;

/** Micrometer's own tests of what a registry has to do. */
class CompatibilityTest extends MeterRegistryCompatibilityKit {
    @Override
    public MeterRegistry registry() {
        return new ParallaxMeterRegistry(new Catalog(), new MockClock());
    }

    @Override
    public Duration step() {
        return Duration.ofMinutes(1);
    }
}
