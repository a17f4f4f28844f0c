package dev.parallax.pauses;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import jdk.jfr.FlightRecorder;
import jdk.jfr.Recording;
import org.junit.jupiter.api.Test;

final class PauseStreamTest {
    /** If this fails, the recorder continues to write data to disk that nobody reads, until the JVM ends. */
    @Test
    void a_stream_that_an_error_ends_leaves_no_recording() throws Exception {
        final List<Recording> before = FlightRecorder.getFlightRecorder().getRecordings();
        final Error planted = new OutOfMemoryError("planted");
        final CompletableFuture<Throwable> ended = new CompletableFuture<>();
        final PauseStream stream = PauseStream.start(pause -> {
            Thread.currentThread().setUncaughtExceptionHandler((thread, thrown) -> ended.complete(thrown));
            throw planted;
        });
        try {
            // What comes before the recorder has started is not reported.
            final long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
            while (!ended.isDone() && System.nanoTime() - endNs < 0) {
                System.gc();
                Thread.sleep(50);
            }
            assertSame(planted, ended.getNow(null));
            assertEquals(before, FlightRecorder.getFlightRecorder().getRecordings());
        } finally {
            stream.close();
        }
    }
}
