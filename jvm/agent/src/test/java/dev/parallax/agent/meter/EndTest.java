package dev.parallax.agent.meter;

import static org.junit.jupiter.api.Assertions.assertFalse;

import dev.parallax.pauses.PauseClock;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;

/** If this fails, the last hiccup of a JVM is lost where looks are far apart, as its end does not wait for the next. */
class EndTest {
    private static final long HOUR_NS = TimeUnit.HOURS.toNanos(1);

    private final PauseClock clock = PauseClock.open();

    @AfterEach
    void close() {
        clock.close();
    }

    @Test
    void aMeterEndsBeforeItsNextLook() throws Exception {
        Meter meter = new Meter(HOUR_NS, clock, raw -> {});
        Thread thread = new Thread(meter);
        thread.setDaemon(true);
        thread.start();
        checkEnds(thread, meter::end);
    }

    @Test
    void aCanaryEndsBeforeItsNextLook() throws Exception {
        Optional<Canary> canary = Canary.start(HOUR_NS, clock, raw -> {});
        Assumptions.assumeTrue(canary.isPresent(), "this JVM has no virtual threads");
        checkEnds(canary.get().thread(), canary.get()::end);
    }

    private static void checkEnds(Thread thread, Runnable end) throws InterruptedException {
        while (thread.getState() != Thread.State.TIMED_WAITING) {
            Thread.sleep(1);
        }
        end.run();
        LockSupport.unpark(thread);
        thread.join(TimeUnit.SECONDS.toMillis(60));
        assertFalse(thread.isAlive(), "it waits");
    }
}
