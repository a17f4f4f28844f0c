package dev.parallax.recorder;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.math.BigInteger;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.Test;

/** Over all buckets and every boundary, not a sample of them. */
class BucketsTest {
    @Test
    void theBucketsFollowOneAnotherAndEveryValueIsInItsOwn() {
        assertEquals(0, Buckets.lowest(0));
        for (int index = 0; index < Buckets.COUNT; index++) {
            long lowest = Buckets.lowest(index);
            long highest = Buckets.highest(index);
            if (lowest > highest) {
                assertEquals(highest + 1, lowest, "bucket " + index + " is empty");
                assertTrue(lowest < 1 << 20, "bucket " + index + " is empty");
                continue;
            }
            assertEquals(index, Buckets.index(lowest), "lowest of " + index);
            assertEquals(index, Buckets.index(Math.min(highest, Buckets.LONGEST)), "highest of " + index);
            assertTrue((highest - lowest) * 128 <= lowest, "bucket " + index + " is wider than one part in 128");
        }
        assertEquals(Buckets.COUNT - 1, Buckets.index(Buckets.LONGEST));
    }

    /** If this fails, a histogram log does not contain what was recorded. */
    @Test
    void eachBucketLiesInOneOfHdrHistogramsWithTwoDigits() {
        for (int digits = 1; digits <= 2; digits++) {
            Histogram theirs = new Histogram(1, Buckets.LONGEST, digits);
            for (int index = 0; index < Buckets.COUNT; index++) {
                assertTrue(
                        isEmpty(index)
                                || theirs.valuesAreEquivalent(Buckets.lowest(index), Buckets.highest(index)),
                        "bucket " + index + " at " + digits + " digits");
            }
        }
    }

    /** If this fails, a scrape shows counts in buckets in which they were not. */
    @Test
    void eachBucketLiesInOneExponentialBucketOfEveryScale() {
        for (int scale = -4; scale <= Buckets.SCALE; scale++) {
            for (int index = 1; index < Buckets.COUNT; index++) {
                if (isEmpty(index)) {
                    continue;
                }
                int theirs = Buckets.exponential(index, scale);
                long lowest = Buckets.lowest(index);
                long highest = Buckets.highest(index);
                assertTrue(isAbove(lowest, theirs, scale), lowest + " at scale " + scale);
                assertTrue(!isAbove(highest, theirs + 1, scale), highest + " at scale " + scale);
            }
        }
    }

    @Test
    void threeDigitsAndScaleSixAreFinerThanTheseBuckets() {
        Histogram finer = new Histogram(1, Buckets.LONGEST, 3);
        int index = Buckets.index(1_000_003);
        assertTrue(!finer.valuesAreEquivalent(Buckets.lowest(index), Buckets.highest(index)));
        long between = (long) (1e9 * Math.pow(2, 1 / 64.0));
        assertEquals(Buckets.index(between), Buckets.index(between + 1));
    }

    private static boolean isEmpty(int index) {
        return Buckets.lowest(index) > Buckets.highest(index);
    }

    /** {@code ns > 1e9 * 2^(i / 2^scale)}, in whole numbers: both sides to the power {@code 2^scale}. */
    private static boolean isAbove(long ns, int i, int scale) {
        int power = scale > 0 ? 1 << scale : 1;
        int exponent = scale > 0 ? i : i << -scale;
        BigInteger left = BigInteger.valueOf(ns).pow(power).shiftLeft(Math.max(0, -exponent));
        BigInteger right = BigInteger.valueOf(1_000_000_000).pow(power).shiftLeft(Math.max(0, exponent));
        return left.compareTo(right) > 0;
    }
}
