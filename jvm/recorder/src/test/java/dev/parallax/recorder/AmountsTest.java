package dev.parallax.recorder;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.OptionalDouble;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class AmountsTest {
    private final AmountRecorder recorder = new AmountRecorder();

    @Test
    void partsAndWholeOnesAddUpExactly() {
        recorder.record(0.1);
        recorder.record(0.2);
        recorder.record(3_600L);
        recorder.record(3_601L);
        recorder.record(1_000_000.25);
        Amounts amounts = recorder.total();
        assertEquals(5, amounts.count());
        assertEquals(0.3 + 3_600 + 3_601 + 1_000_000.25, amounts.sum());
        assertEquals(OptionalDouble.of(1_000_000), amounts.max());
        assertEquals(OptionalDouble.of(0.1), rounded(amounts.valueAtRank(1)));
        assertEquals(OptionalDouble.empty(), amounts.valueAtRank(6));
    }

    @Test
    void whatIsNoAmountIsCountedApart() {
        recorder.record(-1L);
        recorder.record(-0.5);
        recorder.record(Double.NaN);
        recorder.record(Double.POSITIVE_INFINITY);
        recorder.record(1e18);
        Amounts amounts = recorder.total();
        assertEquals(0, amounts.count());
        assertEquals(0, amounts.sum());
        assertEquals(5, amounts.unusable());
        assertEquals(OptionalDouble.empty(), amounts.max());
        assertArrayEquals(new long[] {0, 0}, amounts.countsUpTo(1, Double.POSITIVE_INFINITY));
    }

    /**
     * Small amounts as they would have been counted; powers of two in their own bucket; others at most one part in
     * 128 lower.
     */
    @Test
    void anExponentialHistogramHasEachAmountWhereItBelongsOrJustBelow() {
        SplittableRandom random = new SplittableRandom(1);
        for (int n = 0; n < 20_000; n++) {
            double amount = Math.round(Math.exp(random.nextDouble(Math.log(1e11))));
            check(amount, amount > 3_600 ? amount * (1 - 1.0 / 128) : amount);
        }
        for (int exponent = 0; exponent < 41; exponent++) {
            check(1L << exponent, 1L << exponent);
        }
        check(0.001, 0.001);
    }

    /** @param leastPossible an amount whose bucket is also correct */
    private static void check(double amount, double leastPossible) {
        AmountRecorder one = new AmountRecorder();
        one.record(amount);
        ExponentialBuckets buckets = one.total().exponential(5);
        assertEquals(1, buckets.counts().length);
        assertTrue(buckets.offset() <= bucket(amount), () -> amount + " in " + buckets.offset());
        assertTrue(buckets.offset() >= bucket(leastPossible), () -> amount + " in " + buckets.offset());
    }

    /** By the definition: the largest i with base^i below the value. Exact powers of two come out exact. */
    private static int bucket(double value) {
        int i = (int) Math.floor(Math.log(value) / Math.log(2) * 32) - 1;
        while (Math.pow(2, (i + 1) / 32.0) < value) {
            i++;
        }
        return i;
    }

    @Test
    void countsUpToABoundHaveAllThatAreEqualToItOrBelow() {
        long[] values = {0, 1, 5, 1_000, 3_600, 4_096, 65_536, 1_000_000, 5_000_000_000L};
        double[] bounds = new double[values.length];
        long[] counts = new long[values.length];
        for (int i = 0; i < values.length; i++) {
            recorder.record(values[i]);
            bounds[i] = values[i];
            counts[i] = i + 1;
        }
        assertArrayEquals(counts, recorder.total().countsUpTo(bounds));
        assertArrayEquals(new long[] {2, 5, 9}, recorder.total().countsUpTo(4.9, 4_000, Double.POSITIVE_INFINITY));
    }

    @Test
    void durationsUpToABoundAreInSeconds() {
        Recorder durations = new Recorder();
        for (long ns : new long[] {0, 5_000_000, 5_040_001, 10_000_000, 3_600_000_000_000L, 4_000_000_000_000L}) {
            durations.record(ns);
        }
        assertArrayEquals(
                new long[] {0, 1, 2, 4, 6, 6},
                durations.total().countsUpTo(-1, 0.0049, 0.005, 0.01, 3_600, Double.POSITIVE_INFINITY));
    }

    /** If this fails, five million responses of a kilobyte or two between two scrapes lose what 64 bits do not hold. */
    @Test
    void sumsOfManyAreExactHoweverRarelyTheyAreRead() {
        ThreadHandle near = recorder.threadHandle();
        int records = 6_000_000;
        for (int n = 0; n < records; n++) {
            recorder.record(AmountRecorder.SMALL);
            near.record(AmountRecorder.SMALL);
        }
        near.record(7);
        Amounts amounts = recorder.total();
        assertEquals(2L * records + 1, amounts.count());
        assertEquals(2.0 * records * AmountRecorder.SMALL + 7, amounts.sum());
    }

    /** If this fails, sums above nine thousand million are a little off now and then. */
    @Test
    void sumsBeyondSixtyFourBitsOfBillionthsAreWhole() {
        for (int n = 0; n < 10; n++) {
            recorder.record(AmountRecorder.SMALL);
        }
        Amounts sum = recorder.total();
        long expected = 10L * AmountRecorder.SMALL;
        for (int n = 0; n < 30; n++) {
            sum = sum.plus(sum).plus(recorder.total());
            expected = 2 * expected + 10L * AmountRecorder.SMALL;
            assertEquals(expected, sum.sum());
        }
    }

    @Test
    void anIntervalIsTheDifferenceOfTwoTotals() {
        recorder.record(5L);
        recorder.record(5_000.5);
        Amounts before = recorder.total();
        recorder.record(7L);
        recorder.record(7_000.25);
        Amounts interval = recorder.total().since(before);
        assertEquals(2, interval.count());
        assertEquals(7_007.25, interval.sum());
        assertEquals(4, before.plus(interval).count());
    }

    /** If this fails, large amounts of an interval are of another series than its small ones. */
    @Test
    void whereSmallAmountsBeganAgainLargeOnesDidToo() {
        recorder.record(5L);
        recorder.record(5_000L);
        AmountRecorder anew = new AmountRecorder();
        anew.record(7L);
        anew.record(5_000L);
        anew.record(5_000L);
        Amounts interval = anew.total().since(recorder.total());
        assertEquals(3, interval.count());
        assertEquals(10_007, interval.sum());
    }

    private static OptionalDouble rounded(OptionalDouble value) {
        return OptionalDouble.of(Math.round(value.getAsDouble() * 100) / 100.0);
    }
}
