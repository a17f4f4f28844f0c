package dev.parallax.recorder;

import java.util.concurrent.Semaphore;

/**
 * The main class of a separate JVM whose heap is full except for a few bytes while a recorder is read. With every
 * reading a few more bytes are free, until a reading succeeds, so that memory runs out at every place that allocates.
 */
final class ScarceHeap {
    private static final int THREADS = 2;

    /**
     * Of each thread, before the first reading and after it. At first with a page that is turned for each that is far from all
     * before it, at both ends, so that no page's places are also those of the one before it; then on one page, with repeats.
     */
    private static final long[][][] AMOUNTS = {{{8, 8, 8}, {8, 2, 2, 32, 32, 128, 128, 128}}, {{8}, {15, 15, 15}}};

    /** More and more bytes, whose sum is more than a reading needs. */
    private static final byte[][] REST = new byte[160][];

    private static Object[] ballast;

    private ScarceHeap() {}

    /**
     * Prints how many readings failed; then, one per line, the count and sum recorded, and those read after all
     * that.
     */
    public static void main(String[] args) throws InterruptedException {
        // What the JVM makes once, as classes, is made by the first.
        readUntilThereIsEnough(recorded(AMOUNTS[0]));
        for (long[][] amounts : AMOUNTS) {
            AmountRecorder recorder = recorded(amounts);
            fill();
            int refused = readUntilThereIsEnough(recorder);
            ballast = null;
            Amounts read = recorder.total();
            System.out.println(refused);
            System.out.println(reported(amounts));
            System.out.println(read.count() + " of " + read.sum());
        }
    }

    /** By threads that have ended, two that were read in the meantime and one that was not, and by one that lives. */
    private static AmountRecorder recorded(long[][] amounts) throws InterruptedException {
        AmountRecorder recorder = new AmountRecorder();
        Thread[] threads = new Thread[THREADS];
        Semaphore[] go = new Semaphore[THREADS];
        Semaphore began = new Semaphore(0);
        for (int n = 0; n < THREADS; n++) {
            Semaphore mayGoOn = go[n] = new Semaphore(0);
            threads[n] = new Thread(() -> {
                record(recorder, amounts[0]);
                began.release();
                mayGoOn.acquireUninterruptibly();
                record(recorder, amounts[1]);
            });
            threads[n].start();
        }
        record(recorder, amounts[0]);
        began.acquire(THREADS);
        recorder.total();
        for (int n = 0; n < THREADS; n++) {
            go[n].release();
            threads[n].join();
        }
        Thread unread = new Thread(() -> {
            record(recorder, amounts[0]);
            record(recorder, amounts[1]);
        });
        unread.start();
        unread.join();
        record(recorder, amounts[1]);
        return recorder;
    }

    private static void record(AmountRecorder recorder, long[] amounts) {
        ThreadHandle near = recorder.threadHandle();
        for (long amount : amounts) {
            near.record(amount);
        }
    }

    private static String reported(long[][] amounts) {
        int count = 0;
        double sum = 0;
        for (long[] part : amounts) {
            for (long amount : part) {
                count += THREADS + 2;
                sum += (THREADS + 2) * amount;
            }
        }
        return count + " of " + sum;
    }

    /** Until there is no room for even the smallest array, except in {@link #REST}. */
    private static void fill() {
        for (int n = 0; n < REST.length; n++) {
            REST[n] = new byte[8 * n];
        }
        for (int length = 1 << 20; length >= 1; length >>= 4) {
            fill(length);
        }
    }

    private static void fill(int length) {
        try {
            while (true) {
                Object[] more = new Object[length];
                more[0] = ballast;
                ballast = more;
            }
        } catch (OutOfMemoryError e) {
            // Full.
        }
    }

    private static int readUntilThereIsEnough(AmountRecorder recorder) {
        int refused = 0;
        while (true) {
            try {
                recorder.total();
                return refused;
            } catch (OutOfMemoryError e) {
                REST[refused++] = null;
            }
        }
    }
}
