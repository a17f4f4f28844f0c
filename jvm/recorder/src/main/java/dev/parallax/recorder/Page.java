package dev.parallax.recorder;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * What one {@link Cell} counts into: a header, then the counts of a run of buckets, in one array. An older page is full
 * and final once a newer one can be seen.
 *
 * <p>The array begins with two empty cache lines. What is written on every record is within the same few lines, and no
 * line is shared with what another thread writes, wherever a collection moves the arrays.
 */
final class Page {
    /** Odd while a record is being made. */
    static final int VERSION = 16;

    /** The lower 63 bits. */
    static final int SUM = 17;

    static final int MIN = 18;
    static final int MAX = 19;

    /** A value that is counted already, and how often it came again since: not counted elsewhere. -1 is none. */
    static final int LAST = 20;

    static final int REPEATS = 21;

    /** Of the sum, what is above its lower 63 bits. */
    static final int SUM_HIGH = 22;

    static final int OUT_OF_RANGE = 23;
    static final int UNUSABLE = 24;

    /** The count of bucket {@link #first} stands here. */
    static final int BUCKETS = 25;

    /** A slot, for an order of stores and loads. */
    static final VarHandle SLOT = MethodHandles.arrayElementVarHandle(long[].class);

    final long[] slots;
    final int first;

    /** The page that its owner turned from to reach this one. The reader forgets it when it has taken it. */
    Page older;

    Page(int first, int buckets) {
        this.first = first;
        slots = new long[BUCKETS + buckets];
        slots[MIN] = Long.MAX_VALUE;
        slots[LAST] = -1;
    }

    /** An empty one with all buckets of {@code page}, and {@code index} with an octave to spare beyond it. */
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
     * Copies all slots into {@code copy}; false when a record was being made meanwhile that is no repeat, and then the copy
     * is worth nothing.
     */
    boolean copy(long[] copy) {
        long version = (long) SLOT.getAcquire(slots, VERSION);
        System.arraycopy(slots, 0, copy, 0, slots.length);
        // Repeats come while the version stands; a plain load may tear.
        copy[REPEATS] = (long) SLOT.getOpaque(slots, REPEATS);
        VarHandle.loadLoadFence();
        return (version & 1) == 0 && version == (long) SLOT.getOpaque(slots, VERSION);
    }

    /** Whether a record was made since {@code copy} was. */
    boolean isNewerThan(long[] copy) {
        return (long) SLOT.getAcquire(slots, VERSION) != copy[VERSION] || (long) SLOT.getOpaque(slots, REPEATS) != copy[REPEATS];
    }

    /** Begins a record: from here to {@link #end(long[], long)} a copy is worth nothing. */
    static long begin(long[] slots) {
        // An error within a record (of the stack's end, say) leaves an odd version behind. The next one is odd as well.
        long version = (slots[VERSION] + 1) | 1;
        SLOT.setOpaque(slots, VERSION, version);
        VarHandle.storeStoreFence();
        return version;
    }

    static void end(long[] slots, long version) {
        SLOT.setRelease(slots, VERSION, version + 1);
    }

    /** Counts repeats in their bucket and in the sum. Their number stays: who goes on with these slots has to clear it. */
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
