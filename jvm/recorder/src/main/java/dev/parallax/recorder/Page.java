package dev.parallax.recorder;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * The array that one {@link Cell} counts into: a header, then the counts of a range of buckets. An older page is
 * complete and final once a newer one is visible.
 *
 * <p>The array begins with two empty cache lines. Everything written per record is within a few lines, none of which is
 * shared with another thread's data, wherever the garbage collector moves the arrays.
 */
final class Page {
    /** Odd while a record is being written. */
    static final int VERSION = 16;

    /** The lower 63 bits of the sum. */
    static final int SUM = 17;

    static final int MIN = 18;
    static final int MAX = 19;

    /**
     * The last value counted, and how often it repeated since; repeats are counted nowhere else. -1 if there is none.
     */
    static final int LAST = 20;

    static final int REPEATS = 21;

    /** The sum above its lower 63 bits. */
    static final int SUM_HIGH = 22;

    static final int OUT_OF_RANGE = 23;
    static final int UNUSABLE = 24;

    /** The count of bucket {@link #first}. */
    static final int BUCKETS = 25;

    /** Access to a slot with memory ordering. */
    static final VarHandle SLOT = MethodHandles.arrayElementVarHandle(long[].class);

    final long[] slots;
    final int first;

    /** The page used before this one. The reader clears it once it has taken it. */
    Page older;

    Page(int first, int buckets) {
        this.first = first;
        slots = new long[BUCKETS + buckets];
        slots[MIN] = Long.MAX_VALUE;
        slots[LAST] = -1;
    }

    /** Creates an empty page with all buckets of {@code page} plus {@code index} and one spare octave beyond it. */
    static Page covering(int index, Page page) {
        boolean isEmpty = page.end() == page.first;
        int first = page.first;
        int end = page.end();
        if (isEmpty || index < first) {
            first = Math.max(0, index - Buckets.OCTAVE);
        }
        if (isEmpty || index >= end) {
            end = Math.min(Buckets.COUNT, index + 1 + Buckets.OCTAVE);
        }
        return new Page(first, end - first);
    }

    boolean covers(int index) {
        return index >= first && index < end();
    }

    int end() {
        return first + slots.length - BUCKETS;
    }

    /**
     * Copies all slots into {@code copy}; returns false if a record other than a repeat was written in the meantime, which
     * makes the copy invalid.
     */
    boolean copy(long[] copy) {
        long version = (long) SLOT.getAcquire(slots, VERSION);
        System.arraycopy(slots, 0, copy, 0, slots.length);
        // Repeats do not change the version, and a plain load may tear.
        copy[REPEATS] = (long) SLOT.getOpaque(slots, REPEATS);
        VarHandle.loadLoadFence();
        return (version & 1) == 0 && version == (long) SLOT.getOpaque(slots, VERSION);
    }

    /** Whether a record was written since {@code copy} was taken. */
    boolean isNewerThan(long[] copy) {
        return (long) SLOT.getAcquire(slots, VERSION) != copy[VERSION] || (long) SLOT.getOpaque(slots, REPEATS) != copy[REPEATS];
    }

    /** Begins a record; copies are invalid until {@link #end(long[], long)}. */
    static long begin(long[] slots) {
        // An error inside a record, such as a stack overflow, leaves an odd version behind; the next one is odd as
        // well.
        long version = (slots[VERSION] + 1) | 1;
        SLOT.setOpaque(slots, VERSION, version);
        VarHandle.storeStoreFence();
        return version;
    }

    static void end(long[] slots, long version) {
        SLOT.setRelease(slots, VERSION, version + 1);
    }

    /**
     * Counts the repeats in their bucket and in the sum. Does not reset their number: anyone who keeps using these slots
     * must.
     */
    static void countRepeats(long[] slots, int first) {
        long times = slots[REPEATS];
        if (times > 0) {
            long value = slots[LAST];
            slots[BUCKETS + Buckets.index(value) - first] += times;
            long low = times * value;
            slots[SUM_HIGH] += Math.multiplyHigh(times, value) << 1 | low >>> 63;
            addToSum(slots, low & Long.MAX_VALUE);
        }
    }

    static void addToSum(long[] slots, long value) {
        long sum = slots[SUM] + value;
        if (sum < 0) {
            slots[SUM_HIGH]++;
            sum &= Long.MAX_VALUE;
        }
        slots[SUM] = sum;
    }
}
