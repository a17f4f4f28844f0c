package dev.parallax.recorder;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;

/** What virtual threads record. Java 17 has none; there {@link SnapshotStressTest} shares cells among platform threads. */
@EnabledForJreRange(min = JRE.JAVA_21)
class VirtualThreadsTest {
    private static final int THREADS = 10_000;
    private static final int RECORDS = 100;

    /** If this fails, a server of a million virtual threads has a million cells, or loses what they record. */
    @Test
    void virtualThreadsShareAFewCellsAndLoseNothing() throws Exception {
        Recorder recorder = new Recorder();
        ExecutorService threads = start(recorder);
        long before = 0;
        long count;
        do {
            Durations total = recorder.total();
            count = total.count();
            // Each record is of 7 ns: a snapshot that was not a state shows here.
            assertEquals(7 * count, total.sumNs());
            assertTrue(count >= before);
            before = count;
        } while (count < (long) THREADS * RECORDS && !threads.isTerminated());
        assertTrue(threads.awaitTermination(60, TimeUnit.SECONDS));
        assertEquals((long) THREADS * RECORDS, recorder.total().count());
        assertTrue(recorder.cells() <= 4 * Runtime.getRuntime().availableProcessors() + 4, recorder.cells() + " cells");
    }

    @Test
    void whatTheyCountTheyShare() throws Exception {
        Counter counter = new Counter();
        UpDownCounter upDown = new UpDownCounter();
        ExecutorService threads = start(() -> {
            counter.increment();
            upDown.threadHandle().record(3);
            Thread.yield();
            upDown.threadHandle().record(-2);
        });
        assertTrue(threads.awaitTermination(60, TimeUnit.SECONDS));
        assertEquals(THREADS, counter.total());
        assertEquals(THREADS, upDown.current());
    }

    private static ExecutorService start(Recorder recorder) throws ReflectiveOperationException {
        return start(() -> {
            for (int n = 0; n < RECORDS; n++) {
                recorder.record(7);
                if (n % 10 == 0) {
                    // Off its carrier, and on to another one.
                    Thread.yield();
                }
            }
        });
    }

    private static ExecutorService start(Runnable task) throws ReflectiveOperationException {
        ExecutorService threads =
                (ExecutorService) Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
        for (int i = 0; i < THREADS; i++) {
            threads.execute(task);
        }
        threads.shutdown();
        return threads;
    }
}
