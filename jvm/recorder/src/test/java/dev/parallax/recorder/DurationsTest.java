package dev.parallax.recorder;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.List;
import java.util.OptionalLong;
import java.util.SplittableRandom;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.Test;

class DurationsTest {
    private static final long HOUR = 3_600_000_000_000L;

    @Test
    void countSumLeastAndLongestAreExact() {
        Recorder recorder = new Recorder();
        for (long ns : new long[] {1_000_003, 0, 250, 7_777_777_777L}) {
            recorder.record(ns);
        }
        Durations total = recorder.total();
        assertEquals(4, total.count());
        assertEquals(7_778_778_030L, total.sumNs());
        assertEquals(7.77877803, total.sumSeconds());
        assertEquals(OptionalLong.of(0), total.minNs());
        assertEquals(OptionalLong.of(7_777_777_777L), total.maxNs());
        assertEquals(OptionalLong.of(7_777_777_777L), total.atRank(4));
        assertEquals(OptionalLong.of(250), total.atRank(2));
        assertEquals(OptionalLong.empty(), total.atRank(5));
        assertEquals(OptionalLong.empty(), total.atRank(0));
    }

    /** The minimum sample sizes as documented, and as in the report of any other record. */
    @Test
    void aQuantileIsReportedWhereTheValuesCarryIt() {
        double[] quantiles = {0.5, 0.9, 0.99, 0.999};
        long[] least = {6, 36, 368, 3688};
        Recorder recorder = new Recorder();
        int next = 0;
        for (long n = 0; next < least.length; n++) {
            Durations total = recorder.total();
            assertEquals(n >= least[next], total.quantileNs(quantiles[next]).isPresent(), n + " for " + quantiles[next]);
            next += n == least[next] ? 1 : 0;
            recorder.record(n);
        }
        Durations total = recorder.total();
        assertEquals(total.atRank(3321), total.quantileNs(0.9));
        assertEquals(total.atRank(1845).getAsLong() / 1e9, total.quantile(0.5).getAsDouble());
        assertEquals(OptionalLong.empty(), total.quantileNs(1), "nobody knows how long the longest of all is");
    }

    @Test
    void whatIsNoDurationIsCountedAndIsNowhereElse() {
        Recorder recorder = new Recorder();
        recorder.record(100, 40);
        recorder.record(Long.MIN_VALUE);
        recorder.record(-1);
        recorder.record(Long.MAX_VALUE);
        recorder.record((1L << 50) + 1);
        assertEquals(5, recorder.total().unusable());
        assertEquals(0, recorder.total().count());
        assertEquals(0, recorder.total().sumNs());
        assertEquals(OptionalLong.empty(), recorder.total().maxNs());
        recorder.record(5);
        assertEquals(5, recorder.total().unusable());
        assertEquals(OptionalLong.of(5), recorder.total().maxNs());
    }

    /** The clock's numbers may pass the end of a long between two stamps. */
    @Test
    void stampsOnBothSidesOfTheClocksEndAreTwoStamps() {
        Recorder recorder = new Recorder();
        recorder.record(Long.MAX_VALUE - 10, Long.MIN_VALUE + 9);
        assertEquals(20, recorder.total().sumNs());
    }

    @Test
    void whatIsLongerThanAnHourIsCountedAsAnHourAndSummedAsItIs() {
        Recorder recorder = new Recorder();
        recorder.record(HOUR);
        recorder.record(3 * HOUR);
        recorder.record(1L << 50);
        Durations total = recorder.total();
        assertEquals(3, total.count());
        assertEquals(2, total.outOfRange());
        assertEquals(4 * HOUR + (1L << 50), total.sumNs());
        assertEquals(OptionalLong.of(1L << 50), total.maxNs());
    }

    /** If this fails, the mean of a busy server is wrong from its eleventh day on. */
    @Test
    void sumsPass292Years() {
        Recorder recorder = new Recorder();
        Durations before = Durations.NONE;
        double seconds = 0;
        for (int i = 0; i < 40; i++) {
            for (int n = 0; n < 1000; n++) {
                recorder.record(1L << 50);
            }
            seconds += 1000 * 0x1p50 / 1e9;
            Durations total = recorder.total();
            assertEquals(seconds, total.sumSeconds(), seconds * 1e-12);
            assertEquals(1000L << 50, total.since(before).sumNs());
            before = total;
        }
        assertEquals(Long.MAX_VALUE, before.sumNs());
        assertEquals(2 * seconds, before.plus(before).sumSeconds(), seconds * 1e-12);
    }

    @Test
    void anIntervalIsWhatCameSinceAndTheSumOfIntervalsIsTheTotal() {
        Recorder recorder = new Recorder();
        SplittableRandom random = new SplittableRandom(3);
        Durations before = Durations.NONE;
        Durations sum = Durations.NONE;
        for (int i = 0; i < 50; i++) {
            long least = Long.MAX_VALUE;
            long longest = 0;
            int n = random.nextInt(1, 40);
            for (int k = 0; k < n; k++) {
                long ns = (long) Math.exp(random.nextDouble() * 28);
                least = Math.min(least, ns);
                longest = Math.max(longest, ns);
                recorder.record(ns);
            }
            Durations total = recorder.total();
            Durations interval = total.since(before);
            assertEquals(n, interval.count());
            long min = interval.minNs().getAsLong();
            long max = interval.maxNs().getAsLong();
            assertTrue(min <= least && least - min <= least / 128, least + " as " + min);
            assertTrue(max >= longest && max - longest <= longest / 128, longest + " as " + max);
            before = total;
            sum = sum.plus(interval);
        }
        assertEquals(before.sumNs(), sum.sumNs());
        assertArrayEquals(before.exponential(5).counts(), sum.exponential(5).counts());
        assertEquals(0, recorder.total().since(before).count());
        assertEquals(OptionalLong.empty(), recorder.total().since(before).maxNs());
    }

    /** If this fails, an interval of a series that began again has less than none of something, or lacks what came first. */
    @Test
    void aTotalThatLacksWhatTheEarlierHadBeganAgain() {
        Durations earlier = total(1, 1_000_100, 2_000_000, -1);
        assertEquals(1, total(1, 1_000_100, 2_000_000, 5_000_000, -1).since(earlier).count());
        for (Durations anew : List.of(
                total(1, 3_000_000, 3_000_000, 3_000_000, 2_000_000, -1),
                // Here the buckets are the same ones.
                total(1, 1_000_000, 2_000_000, -1),
                total(1, 1_000_200, 1_999_999, -1),
                total(1, 1_000_200, 2_000_000))) {
            Durations interval = anew.since(earlier);
            assertEquals(anew.count(), interval.count());
            assertEquals(anew.sumNs(), interval.sumNs());
            assertArrayEquals(anew.counts(), interval.counts());
        }
        assertEquals(3, earlier.since(Amounts.NONE).count());
    }

    private static Durations total(long... ns) {
        Recorder recorder = new Recorder();
        for (long one : ns) {
            recorder.record(one);
        }
        return recorder.total();
    }

    /** What comes out is what HdrHistogram would have counted itself. */
    @Test
    void anHdrHistogramIsTheOneThatWouldHaveBeenRecorded() {
        Recorder recorder = new Recorder();
        Histogram theirs = new Histogram(1, HOUR, 2);
        SplittableRandom random = new SplittableRandom(5);
        for (int i = 0; i < 100_000; i++) {
            long ns = Math.min(HOUR, (long) Math.exp(random.nextDouble() * 28.9));
            recorder.record(ns);
            theirs.recordValue(ns);
        }
        Histogram ours = recorder.total().toHdrHistogram();
        assertEquals(theirs, ours);
        assertEquals(theirs.getValueAtPercentile(99), ours.getValueAtPercentile(99));
    }

    @Test
    void anExponentialHistogramHasItsBucketsInSeconds() {
        Recorder recorder = new Recorder();
        recorder.record(0);
        recorder.record(1_000_000_000);
        recorder.record(1_000_000_001);
        recorder.record(2_000_000_000);
        recorder.record(2_000_000_001);
        ExponentialBuckets powers = recorder.total().exponential(0);
        assertEquals(1, powers.zeroCount());
        assertEquals(-1, powers.offset());
        assertEquals("[1, 2, 1]", Arrays.toString(powers.counts()));
        ExponentialBuckets finest = recorder.total().exponential(5);
        for (int scale = 5; scale >= -4; scale--) {
            ExponentialBuckets coarser = recorder.total().exponential(scale);
            assertEquals(coarser.offset(), finest.toScale(scale).offset());
            assertArrayEquals(coarser.counts(), finest.toScale(scale).counts());
        }
        assertEquals(-1, finest.offset());
        assertEquals(34, finest.counts().length);
    }
}
