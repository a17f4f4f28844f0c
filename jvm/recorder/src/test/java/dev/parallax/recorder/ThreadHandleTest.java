package dev.parallax.recorder;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class ThreadHandleTest {
    private static final int RECORDS = 200_000;

    private final Recorder durations = new Recorder();
    private final AmountRecorder amounts = new AmountRecorder();
    private final UpDownCounter upDown = new UpDownCounter();

    @Test
    void whatIsRecordedNearIsInTheSeries() {
        ThreadHandle near = durations.threadHandle();
        near.record(7);
        near.record(-1);
        durations.record(8);
        assertEquals(2, durations.total().count());
        assertEquals(15, durations.total().sumNs());
        assertEquals(1, durations.total().unusable());

        ThreadHandle nearAmounts = amounts.threadHandle();
        for (long amount : new long[] {0, AmountRecorder.SMALL, AmountRecorder.SMALL + 1, 1_000_000, -1}) {
            nearAmounts.record(amount);
        }
        assertEquals(4, amounts.total().count());
        assertEquals(2 * AmountRecorder.SMALL + 1_000_001, amounts.total().sum());
        assertEquals(1, amounts.total().unusable());

        ThreadHandle nearCount = upDown.threadHandle();
        nearCount.record(5);
        nearCount.record(-2);
        upDown.increment();
        assertEquals(4, upDown.current());
    }

    /** Runs of the same, of lengths by chance, with what is recorded otherwise and readings in between. */
    @Test
    void whatComesAgainIsCountedEachTime() {
        SplittableRandom random = new SplittableRandom(5);
        ThreadHandle near = amounts.threadHandle();
        AmountRecorder plain = new AmountRecorder();
        for (int run = 0; run < 2_000; run++) {
            long amount = random.nextBoolean() ? random.nextInt(4) : random.nextLong(2 * AmountRecorder.SMALL);
            for (int n = random.nextInt(5); n >= 0; n--) {
                near.record(amount);
                plain.record(amount);
                if (random.nextInt(8) == 0) {
                    amounts.record(amount + 1);
                    plain.record(amount + 1);
                }
                if (random.nextInt(4) == 0) {
                    checkSame(plain.total(), amounts.total());
                }
            }
        }
        checkSame(plain.total(), amounts.total());
    }

    private static void checkSame(Amounts expected, Amounts seen) {
        assertEquals(expected.count(), seen.count());
        assertEquals(expected.sum(), seen.sum());
        assertEquals(expected.min(), seen.min());
        assertEquals(expected.max(), seen.max());
        ExponentialBuckets buckets = expected.exponential(5);
        assertEquals(buckets.offset(), seen.exponential(5).offset());
        assertArrayEquals(buckets.counts(), seen.exponential(5).counts());
    }

    /** If this fails, a scrape next to a busy loop reports a sum that is not of the records it counts. */
    @Test
    void whoReadsWhileTheSameComesAgainSeesASumOfWhatItCounts() throws Exception {
        long[] values = {0, 1, 1_000, AmountRecorder.SMALL};
        AtomicBoolean isRead = new AtomicBoolean();
        Thread writer = new Thread(() -> {
            SplittableRandom random = new SplittableRandom(6);
            ThreadHandle near = amounts.threadHandle();
            while (!isRead.get()) {
                long value = values[random.nextInt(values.length)];
                for (int again = random.nextInt(100); again >= 0; again--) {
                    near.record(value);
                }
            }
        });
        writer.start();
        try {
            for (int reading = 0; reading < 1_000 || amounts.total().count() < RECORDS; reading++) {
                Amounts total = amounts.total();
                long[] upTo = total.countsUpTo(0, 1, 1_000, AmountRecorder.SMALL);
                double sum = 0;
                for (int i = 1; i < values.length; i++) {
                    sum += (upTo[i] - upTo[i - 1]) * (double) values[i];
                }
                assertEquals(sum, total.sum());
            }
        } finally {
            isRead.set(true);
        }
        writer.join();
    }

    /** If this fails, an exchange that ends on another thread spoils the counts of the one that began it. */
    @Test
    void threadsMayShareOne() throws Exception {
        ThreadHandle[] all = {durations.threadHandle(), amounts.threadHandle(), upDown.threadHandle()};
        Runnable recording = () -> {
            for (int n = 0; n < RECORDS; n++) {
                for (ThreadHandle near : all) {
                    near.record(1);
                }
            }
        };
        List<Thread> others = List.of(new Thread(recording), new Thread(recording));
        others.forEach(Thread::start);
        recording.run();
        for (Thread other : others) {
            other.join();
        }
        assertEquals(3 * RECORDS, durations.total().count());
        assertEquals(3 * RECORDS, amounts.total().count());
        assertEquals(3 * RECORDS, upDown.current());
    }

    /**
     * More threads than places, one after another and then concurrently: each place has one owner, and nothing is
     * lost.
     */
    @Test
    void threadsThatComeAndGoLoseNothing() throws Exception {
        Counter counter = new Counter();
        int threads = 10 * Recorder.OWNED_MAX;
        for (int n = 0; n < threads; n++) {
            Thread one = new Thread(counter::increment);
            one.start();
            one.join();
        }
        List<Thread> all = new ArrayList<>();
        for (int n = 0; n < threads; n++) {
            all.add(new Thread(() -> {
                ThreadHandle near = upDown.threadHandle();
                for (int i = 0; i < 1_000; i++) {
                    counter.increment();
                    near.record(1);
                    upDown.decrement();
                }
            }));
        }
        all.forEach(Thread::start);
        for (Thread one : all) {
            one.join();
        }
        assertEquals(threads + 1_000.0 * threads, counter.total());
        assertEquals(0, upDown.current());
    }

    /** What one thread counted up another counts down: who reads in the meantime sees no more gone than came. */
    @Test
    void whatWentHasCome() throws Exception {
        AtomicInteger came = new AtomicInteger();
        Thread up = new Thread(() -> {
            for (int n = 0; n < RECORDS; n++) {
                upDown.increment();
                came.incrementAndGet();
            }
        });
        Thread down = new Thread(() -> {
            for (int n = 0; n < RECORDS; ) {
                if (n < came.get()) {
                    upDown.decrement();
                    n++;
                }
            }
        });
        up.start();
        down.start();
        while (down.isAlive()) {
            assertTrue(upDown.current() >= 0);
        }
        assertEquals(0, upDown.current());
    }

    @Test
    void askingAgainIsTheSameAndAllocatesNothing() throws Exception {
        ThreadHandle near = durations.threadHandle();
        assertSame(near, durations.threadHandle());
        ThreadHandle[] others = new ThreadHandle[1];
        Thread other = new Thread(() -> others[0] = durations.threadHandle());
        other.start();
        other.join();
        assertNotSame(near, others[0]);

        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long least = Long.MAX_VALUE;
        // A collection may be among them; what the code allocates is in all.
        for (int trial = 0; trial < 20; trial++) {
            long before = threads.getCurrentThreadAllocatedBytes();
            for (int n = 0; n < 1_000; n++) {
                durations.threadHandle().record(1);
                amounts.threadHandle().record(1);
                upDown.threadHandle().record(1);
            }
            least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
        }
        assertEquals(0, least);
    }
}
