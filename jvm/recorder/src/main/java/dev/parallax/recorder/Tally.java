package dev.parallax.recorder;

import java.util.Arrays;

/** Counts that are added up: what readers keep, where {@link Durations} is what they hand out. One thread at a time. */
final class Tally {
    /** The bucket whose count is the first of {@link #counts}. */
    int first;

    long[] counts = {};

    /** The sum is of 128 bits: what many threads wait together may pass 292 years. */
    long sumHigh;

    long sumLow;
    long min = Long.MAX_VALUE;
    long max = -1;
    long outOfRange;
    long unusable;

    /** Adds what stands in {@code slots} of {@code page} and did not yet in {@code taken}, or all where that is null. */
    void add(Page page, long[] slots, long[] taken) {
        for (int at = Page.BUCKETS; at < slots.length; at++) {
            long count = slots[at] - (taken == null ? 0 : taken[at]);
            if (count != 0) {
                addAt(page.first + at - Page.BUCKETS, count);
            }
        }
        addSum(0, slots[Page.SUM] - (taken == null ? 0 : taken[Page.SUM]));
        outOfRange += slots[Page.OUT_OF_RANGE] - (taken == null ? 0 : taken[Page.OUT_OF_RANGE]);
        unusable += slots[Page.UNUSABLE] - (taken == null ? 0 : taken[Page.UNUSABLE]);
        min = Math.min(min, slots[Page.MIN]);
        max = Math.max(max, slots[Page.MAX] == 0 && slots[Page.MIN] != 0 ? -1 : slots[Page.MAX]);
    }

    /** Adds {@code sign} times all of {@code other}; of the least and the longest only what adding tells. */
    void add(Tally other, int sign) {
        for (int i = 0; i < other.counts.length; i++) {
            if (other.counts[i] != 0) {
                addAt(other.first + i, sign * other.counts[i]);
            }
        }
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

    /** Adds to the count of a bucket, and makes a place for it where there is none. */
    private void addAt(int index, long count) {
        if (counts.length == 0) {
            first = index;
            counts = new long[1];
        } else if (index < first) {
            long[] wider = new long[counts.length + first - index];
            System.arraycopy(counts, 0, wider, first - index, counts.length);
            counts = wider;
            first = index;
        } else if (index >= first + counts.length) {
            counts = Arrays.copyOf(counts, index + 1 - first);
        }
        counts[index - first] += count;
    }
}
