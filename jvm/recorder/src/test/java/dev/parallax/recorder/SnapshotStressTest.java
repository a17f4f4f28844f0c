package dev.parallax.recorder;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;

/**
 * Readers against writers that never pause: every interval must be a state that existed, and nothing may be lost or
 * counted twice. The long form is in the benchmarks' jcstress tests.
 */
class SnapshotStressTest {
    private static final int WRITERS = 3;
    private static final int RECORDS = 2_000_000;

    /** All records are of one length, so that a sum reports a count that is not its own. */
    @Test
    void everySnapshotHasTheSumOfTheRecordsItCounts() throws InterruptedException {
        long ns = 1_234_567;
        Recorder recorder = new Recorder();
        List<Thread> writers = start(WRITERS, () -> {
            for (int i = 0; i < RECORDS; i++) {
                recorder.record(ns);
            }
        });
        long last = 0;
        int readings = 0;
        while (writers.stream().anyMatch(Thread::isAlive)) {
            Durations total = recorder.total();
            assertEquals(total.count() * ns, total.sumNs());
            assertTrue(total.count() >= last);
            last = total.count();
            readings++;
        }
        assertTrue(readings > 1);
        assertEquals((long) WRITERS * RECORDS, recorder.total().count());
    }

    /** If this fails, a scrape of thousands of series that rest copies them all. */
    @Test
    void whatDidNotChangeIsNotCopiedAgain() {
        Recorder recorder = new Recorder();
        recorder.record(1_000);
        Durations before = recorder.total();
        assertSame(before, recorder.total());
        recorder.record(-1);
        assertEquals(1, recorder.total().unusable());
        recorder.record(1_000);
        recorder.record(1_000_000_000);
        assertEquals(3, recorder.total().count());
        assertEquals(1_000_002_000, recorder.total().sumNs());
        assertEquals(1, before.count());
    }

    /** With many lengths, with pages that grow while they are read, and with values that are not durations. */
    @Test
    void nothingIsLostAndNothingIsCountedTwice() throws InterruptedException {
        Recorder recorder = new Recorder();
        long[] sums = new long[WRITERS];
        List<Thread> writers = new ArrayList<>();
        for (int w = 0; w < WRITERS; w++) {
            int writer = w;
            writers.addAll(start(1, () -> {
                SplittableRandom random = new SplittableRandom(writer);
                for (int i = 0; i < RECORDS; i++) {
                    // Wider and wider, so that pages are turned for both reasons.
                    long ns = random.nextLong(1L << 4 + (int) (36L * i / RECORDS));
                    sums[writer] += ns;
                    recorder.record(ns);
                    if ((i & 1023) == 0) {
                        recorder.record(-ns - 1);
                    }
                }
            }));
        }
        Durations before = Durations.NONE;
        Durations intervals = Durations.NONE;
        while (writers.stream().anyMatch(Thread::isAlive)) {
            Durations total = recorder.total();
            intervals = intervals.plus(total.since(before));
            before = total;
        }
        Durations total = recorder.total();
        intervals = intervals.plus(total.since(before));
        long sum = 0;
        for (long one : sums) {
            sum += one;
        }
        assertEquals((long) WRITERS * RECORDS, total.count());
        assertEquals(sum, total.sumNs());
        assertEquals(WRITERS * ((RECORDS + 1023L) / 1024), total.unusable());
        assertEquals(total.count(), intervals.count());
        assertEquals(total.sumNs(), intervals.sumNs());
        assertEquals(total.toHdrHistogram(), intervals.toHdrHistogram());
        assertEquals(0, recorder.cells(), "the writers have ended");
    }

    /** A thread a record: cells are handed on, not heaped up. */
    @Test
    void threadsThatEndLeaveTheirCountsAndNoCells() throws InterruptedException {
        Recorder recorder = new Recorder();
        for (int i = 0; i < 2_000; i++) {
            int n = i;
            start(1, () -> recorder.record(n)).get(0).join();
            assertTrue(recorder.cells() <= 1);
        }
        assertEquals(2_000, recorder.total().count());
        assertEquals(2_000L * 1_999 / 2, recorder.total().sumNs());
        assertEquals(0, recorder.cells());
    }

    @Test
    void moreThreadsThanCellsShareSome() throws InterruptedException {
        Recorder recorder = new Recorder();
        AtomicBoolean go = new AtomicBoolean();
        int threads = 3 * Recorder.OWNED_MAX;
        List<Thread> writers = start(threads, () -> {
            recorder.record(1);
            while (!go.get()) {
                Thread.onSpinWait();
                Thread.yield();
            }
            for (int i = 0; i < 20_000; i++) {
                recorder.record(1);
            }
        });
        while (recorder.total().count() < threads) {
            Thread.yield();
        }
        assertTrue(recorder.cells() > Recorder.OWNED_MAX, "some are shared");
        assertTrue(recorder.cells() < threads, "one for each is not what sharing is");
        go.set(true);
        for (Thread writer : writers) {
            writer.join();
        }
        assertEquals(threads * 20_001L, recorder.total().count());
    }

    private static List<Thread> start(int n, Runnable run) {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            Thread thread = new Thread(run);
            thread.start();
            threads.add(thread);
        }
        return threads;
    }
}
