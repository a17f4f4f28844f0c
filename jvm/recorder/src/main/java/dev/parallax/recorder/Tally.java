package dev.parallax.recorder;

import java.util.Arrays;

/** Mutable counts that readers add up; {@link Durations} is the immutable form they hand out. Not thread-safe. */
final class Tally {
    /** The bucket whose count is the first of {@link #counts}. */
    int first;

    long[] counts = {};

    /** Total over all buckets. */
    long count;

    /** The sum has 128 bits: the waits of many threads together can exceed 292 years. */
    long sumHigh;

    long sumLow;
    long min = Long.MAX_VALUE;
    long max = -1;
    long outOfRange;
    long unusable;

    /** Adds everything on a final page; if memory runs out, nothing. */
    void add(Page page) {
        long[] slots = page.slots;
        cover(page, slots);
        Page.countRepeats(slots, page.first);
        int to = page.first - Page.BUCKETS - first;
        for (int at = Page.BUCKETS; at < slots.length; at++) {
            if (slots[at] != 0) {
                counts[to + at] += slots[at];
                count += slots[at];
            }
        }
        addHead(slots, null);
    }

    /**
     * Adds what is in {@code slots} but not in {@code taken}, and updates {@code taken}; if memory runs out, nothing.
     *
     * @param slots those of {@code page} if they are final, or a copy, which may be longer
     */
    void add(Page page, long[] slots, long[] taken) {
        cover(page, slots);
        Page.countRepeats(slots, page.first);
        int end = page.slots.length;
        int at = Page.BUCKETS;
        // Few buckets have changed; mismatch skips the others at full speed.
        int same = Arrays.mismatch(slots, at, end, taken, at, end);
        while (same >= 0) {
            at += same;
            counts[page.first + at - Page.BUCKETS - first] += slots[at] - taken[at];
            count += slots[at] - taken[at];
            taken[at] = slots[at];
            at++;
            same = Arrays.mismatch(slots, at, end, taken, at, end);
        }
        addHead(slots, taken);
        System.arraycopy(slots, 0, taken, 0, Page.BUCKETS);
    }

    private void addHead(long[] slots, long[] taken) {
        long high = slots[Page.SUM_HIGH] - (taken == null ? 0 : taken[Page.SUM_HIGH]);
        long low = slots[Page.SUM] - (taken == null ? 0 : taken[Page.SUM]);
        addSum(high >> 1, high << 63);
        addSum(low >> 63, low);
        outOfRange += slots[Page.OUT_OF_RANGE] - (taken == null ? 0 : taken[Page.OUT_OF_RANGE]);
        unusable += slots[Page.UNUSABLE] - (taken == null ? 0 : taken[Page.UNUSABLE]);
        min = Math.min(min, slots[Page.MIN]);
        max = Math.max(max, slots[Page.MAX] == 0 && slots[Page.MIN] != 0 ? -1 : slots[Page.MAX]);
    }

    /** Adds {@code sign} times {@code other}. A negative sign leaves minimum and maximum unchanged. */
    void add(Tally other, int sign) {
        if (counts.length == 0 && sign > 0) {
            first = other.first;
            counts = other.counts.clone();
        } else if (other.counts.length > 0) {
            cover(other.first, other.first + other.counts.length);
            for (int i = 0; i < other.counts.length; i++) {
                counts[other.first + i - first] += sign * other.counts[i];
            }
        }
        count += sign * other.count;
        if (sign > 0) {
            addSum(other.sumHigh, other.sumLow);
        } else {
            long low = sumLow - other.sumLow;
            sumHigh -= other.sumHigh + (Long.compareUnsigned(sumLow, other.sumLow) < 0 ? 1 : 0);
            sumLow = low;
        }
        outOfRange += sign * other.outOfRange;
        unusable += sign * other.unusable;
        if (sign > 0) {
            min = Math.min(min, other.min);
            max = Math.max(max, other.max);
        }
    }

    /**
     * Whether this can be a later total of the same series: no bucket has decreased, and the minimum and maximum are no
     * narrower.
     */
    boolean hasAllOf(Tally earlier) {
        for (int i = 0; i < earlier.counts.length; i++) {
            int at = earlier.first + i - first;
            if (earlier.counts[i] > (at >= 0 && at < counts.length ? counts[at] : 0)) {
                return false;
            }
        }
        boolean isSumLess = sumHigh == earlier.sumHigh
                ? Long.compareUnsigned(sumLow, earlier.sumLow) < 0
                : sumHigh < earlier.sumHigh;
        return !isSumLess
                && min <= earlier.min
                && max >= earlier.max
                && outOfRange >= earlier.outOfRange
                && unusable >= earlier.unusable;
    }

    Tally copy() {
        Tally copy = new Tally();
        copy.add(this, 1);
        return copy;
    }

    private void addSum(long high, long low) {
        long sum = sumLow + low;
        sumHigh += high + (Long.compareUnsigned(sum, sumLow) < 0 ? 1 : 0);
        sumLow = sum;
    }

    /**
     * Makes room for everything in {@code slots}, so that adding it allocates nothing. The bucket of a repeated value
     * is never empty.
     *
     * @param slots as in {@link #add(Page, long[], long[])}
     */
    void cover(Page page, long[] slots) {
        int low = Page.BUCKETS;
        int high = page.slots.length;
        while (low < high && slots[low] == 0) {
            low++;
        }
        while (low < high && slots[high - 1] == 0) {
            high--;
        }
        if (low < high) {
            int to = page.first - Page.BUCKETS;
            cover(to + low, to + high);
        }
    }

    /** Makes room for the buckets from {@code from} to before {@code to}. */
    private void cover(int from, int to) {
        if (counts.length == 0) {
            first = from;
            counts = new long[to - from];
        } else if (from < first || to > first + counts.length) {
            int least = Math.min(from, first);
            long[] wider = new long[Math.max(to, first + counts.length) - least];
            System.arraycopy(counts, 0, wider, first - least, counts.length);
            counts = wider;
            first = least;
        }
    }
}
