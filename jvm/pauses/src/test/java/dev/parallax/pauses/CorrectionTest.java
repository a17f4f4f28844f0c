package dev.parallax.pauses;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The correction compared with the true waits of an open load, by simulation and where there is a closed form. */
@Tag("simulation")
final class CorrectionTest {
    private static final long MS = 1_000_000;
    private static final LogLinear SCALE = new LogLinear();
    private static final boolean LONG = Boolean.getBoolean("long");
    /** Trials of each case. Of twenty, one may miss: a quantile of a simulation is itself uncertain. Of five, none. */
    private static final int SEEDS = LONG ? 20 : 5;
    private static final int MAY_MISS = LONG ? 1 : 0;
    /** Of 200,000 operations p99.9 of the work is known to 1.5 %, the end of a long pause to less. */
    private static final int LEAST_OPERATIONS = LONG ? 800_000 : 200_000;
    /** Where pauses are as short as the work, both its tail and theirs decide: so it has to be known better. */
    private static final int SHORT_PAUSE_FACTOR = 4;
    private static final int MOST_OPERATIONS = 2_500_000;
    private static final int LEAST_PAUSES = LONG ? 20 : 3;

    /** One row of the table: a load, its pauses, and what the recorder sees of it. */
    record Case(OpenLoad.Arrivals arrivals, double ratePerS, OpenLoad.Length pause, Seen seen) {
        /** Enough for both percentiles to be among those that met a pause; more if long pauses would be few. */
        double pausedShare() {
            final double share = LEAST_PAUSES * pause.meanNs() * ratePerS / 1e9 / MOST_OPERATIONS;
            return Math.max(0.04, Math.min(0.2, share));
        }

        long untilNs() {
            final int operations = LEAST_OPERATIONS * (pause.mostNs() <= MS ? SHORT_PAUSE_FACTOR : 1);
            return (long) Math.max(
                operations / ratePerS * 1e9, LEAST_PAUSES * pause.meanNs() / pausedShare());
        }
    }

    /** What the recorder is next to. */
    enum Seen {
        /** Callers that send a request whenever they run. */
        FREE(Starts.WHEN_FREE),
        /** Callers that send a request, think and send again. */
        LOOP(Starts.WHEN_FREE),
        /** A server that picks up what waited outside. */
        SERVER(Starts.WHEN_TAKEN_UP);

        private final Starts starts;

        Seen(final Starts starts) {
            this.starts = starts;
        }
    }

    static List<Case> cases() {
        final List<Case> cases = new ArrayList<>();
        for (final double rate : new double[] {10, 1_000, 100_000}) {
            for (final long[] pauseMs : new long[][] {{1, 1}, {30, 30}, {1000, 1000}, {1, 1000}}) {
                final OpenLoad.Length pause = new OpenLoad.Length(pauseMs[0] * MS, pauseMs[1] * MS);
                for (final OpenLoad.Arrivals arrivals : OpenLoad.Arrivals.values()) {
                    cases.add(new Case(arrivals, rate, pause, Seen.FREE));
                    cases.add(new Case(arrivals, rate, pause, Seen.SERVER));
                }
                cases.add(new Case(OpenLoad.Arrivals.POISSON, rate, pause, Seen.LOOP));
            }
        }
        return cases;
    }

    /** If this fails, pauses look to callers as short as the recorder found them, or longer than they were. */
    @ParameterizedTest
    @MethodSource("cases")
    @Execution(ExecutionMode.CONCURRENT)
    void high_percentiles_are_those_of_the_open_load(final Case one) {
        int missed = 0;
        final StringBuilder reported = new StringBuilder();
        for (int seed = 0; seed < SEEDS; seed++) {
            final Outcome outcome = simulate(one, seed);
            final double off = Math.max(outcome.off(0.99), outcome.off(0.999));
            if (off > 0.05) {
                missed++;
            }
            reported.append(String.format(" %.1f %%", off * 100));
        }
        assertTrue(missed <= MAY_MISS, one + " is off by" + reported);
    }

    /** The recorded values alone are far off, so doing nothing does not pass the test above. */
    @Test
    void what_was_recorded_is_far_from_what_an_open_load_waits() {
        final Case one = new Case(
            OpenLoad.Arrivals.POISSON, 1_000, new OpenLoad.Length(1000 * MS, 1000 * MS), Seen.LOOP);
        final Outcome outcome = simulate(one, 1);
        final Corrected uncorrected = new Corrected(SCALE, outcome.corrected.recorded(), null, Optional.empty());
        assertTrue(outcome.truthNs(0.99) > 20 * uncorrected.quantileNs(0.99).orElseThrow());
    }

    /** Work of exactly s, one pause P in an interval T: the quantile q waits P - (1 - q) T, while 1 - q < P / T. */
    @Test
    void a_single_pause_is_the_ramp_that_can_be_written_down() {
        final Corrected corrected = correct(Starts.WHEN_FREE, second(900, 5 * MS, 100 * MS));
        assertEquals(100, corrected.added(), 1e-6);
        assertNear(5 * MS + 90 * MS, corrected.quantileNs(0.99));
        assertNear(5 * MS + 50 * MS, corrected.quantileNs(0.95));
        assertNear(5 * MS, corrected.quantileNs(0.89));
    }

    /**
     * A thousand per second in a pause of 100 ms: the last half request waits 99.5 ms, and the chance that it meets the
     * one of 900 that took 50 ms is too small to be in the whole numbers.
     */
    @Test
    void the_longest_is_one_that_an_open_load_would_have_met() {
        final Interval interval = second(899, 5 * MS, 100 * MS);
        interval.counts()[SCALE.bucketOf(50 * MS)]++;
        final Corrected corrected = correct(Starts.WHEN_FREE, interval);
        assertNear(104_500_000, corrected.maxNs());
        assertNear(150 * MS, corrected.quantileNs(1));
        final Interval still = second(899, 5 * MS);
        still.counts()[SCALE.bucketOf(50 * MS)]++;
        assertNear(50 * MS, correct(Starts.WHEN_FREE, still).maxNs());
        assertTrue(correct(Starts.WHEN_FREE, second(0, 5 * MS)).maxNs().isEmpty());
    }

    /** What waited outside and was picked up after the pause is counted once: it is moved, not added to. */
    @Test
    void a_server_has_as_many_operations_corrected_as_recorded() {
        final Corrected corrected = correct(Starts.WHEN_TAKEN_UP, second(1_000, 5 * MS, 100 * MS));
        assertEquals(0, corrected.added(), 1e-6);
        assertNear(5 * MS + 90 * MS, corrected.quantileNs(0.99));
    }

    @Test
    void without_pauses_nothing_changes() {
        for (final Starts starts : Starts.values()) {
            final Interval interval = second(1_000, 5 * MS);
            final Corrected corrected = correct(starts, interval);
            for (int i = 0; i < SCALE.buckets(); i++) {
                assertEquals(interval.counts()[i], corrected.corrected(i), 0.0);
            }
            assertArrayEquals(interval.counts(), corrected.rounded());
        }
    }

    @Test
    void the_recorded_is_never_changed() {
        final Interval interval = second(900, 5 * MS, 100 * MS);
        final long[] before = interval.counts().clone();
        final Corrected corrected = correct(Starts.WHEN_FREE, interval);
        assertArrayEquals(before, interval.counts());
        assertArrayEquals(before, corrected.recorded());
    }

    @Test
    void an_intended_start_is_refused_in_words() {
        final Interval interval = second(900, 5 * MS, 100 * MS);
        final Corrected corrected = correct(Starts.INTENDED, interval);
        assertTrue(corrected.refused().orElseThrow().contains("intended"));
        assertArrayEquals(interval.counts(), corrected.rounded());
    }

    /** One operation in five seconds and a pause of 50 ms in each: an hour adds its due share, 1 % and 720 / 99. */
    @Test
    void a_rare_series_gets_its_due_share() {
        final Correction correction = new Correction(SCALE, Starts.WHEN_FREE);
        Corrected sum = correction.correct(second(1, 5 * MS, 50 * MS));
        for (int second = 1; second < 3_600; second++) {
            sum = sum.plus(correction.correct(second(second % 5 == 0 ? 1 : 0, 5 * MS, 50 * MS)));
        }
        final double due = 720 / 0.95 * 0.05;
        assertEquals(due, sum.added(), due * 0.02);
    }

    /** Ten callers in operations of many seconds: none ends, and in the pause an eleventh would have come. */
    @Test
    void operations_in_flight_count_as_asked_for() {
        final Correction correction = new Correction(SCALE, Starts.WHEN_FREE);
        correction.correct(second(1, 5 * MS));
        final Interval stuck = new Interval(
            1000 * MS, new long[SCALE.buckets()], new long[] {500 * MS}, OptionalLong.of(10));
        final Interval unknown = new Interval(
            1000 * MS, new long[SCALE.buckets()], new long[] {500 * MS}, OptionalLong.empty());
        final Correction blind = new Correction(SCALE, Starts.WHEN_FREE);
        blind.correct(second(1, 5 * MS));
        assertTrue(correction.correct(stuck).added() > 9 * blind.correct(unknown).added());
    }

    /** A pause that takes the whole interval is judged by the load before it. */
    @Test
    void a_pause_longer_than_the_interval_is_corrected() {
        final Correction correction = new Correction(SCALE, Starts.WHEN_FREE);
        correction.correct(second(1_000, 5 * MS));
        final Corrected corrected = correction.correct(second(0, 5 * MS, 1000 * MS));
        assertEquals(1_000, corrected.added(), 1e-6);
    }

    private static Corrected correct(final Starts starts, final Interval interval) {
        return new Correction(SCALE, starts).correct(interval);
    }

    private static Interval second(final long operations, final long durationNs, final long... pausesNs) {
        final long[] counts = new long[SCALE.buckets()];
        counts[SCALE.bucketOf(durationNs)] = operations;
        return new Interval(1000 * MS, counts, pausesNs, OptionalLong.empty());
    }

    /** A bucket is 0.8 % wide; both the work and the sum are in one. */
    private static void assertNear(final long expectedNs, final OptionalLong foundNs) {
        assertEquals(expectedNs, foundNs.orElseThrow(), expectedNs * 0.016);
    }

    private record Outcome(long[] truthNs, Corrected corrected) {
        double truthNs(final double quantile) {
            return truthNs[(int) Math.ceil(quantile * truthNs.length) - 1];
        }

        /** By which share the corrected quantile is off from the true one. */
        double off(final double quantile) {
            return Math.abs(corrected.quantileNs(quantile).orElseThrow() / truthNs(quantile) - 1);
        }
    }

    private static Outcome simulate(final Case one, final int seed) {
        final SplittableRandom random = new SplittableRandom(seed);
        final long untilNs = one.untilNs();
        final long[] edges = OpenLoad.pauses(untilNs, one.pausedShare(), one.pause, random);
        final Sample truth = new Sample();
        new OpenLoad(one.ratePerS, one.arrivals, edges, random.split()).truth(untilNs, truth::take);

        final Recorded recorded = new Recorded(untilNs);
        final OpenLoad load = new OpenLoad(one.ratePerS, one.arrivals, edges, random.split());
        switch (one.seen) {
            case FREE -> load.recordedWhenFree(untilNs, recorded::take);
            case LOOP -> load.recordedInALoop((int) Math.max(1, one.ratePerS / 250), untilNs, recorded::take);
            case SERVER -> load.recordedWhenTakenUp(untilNs, recorded::take);
        }
        return new Outcome(truth.sorted(), recorded.correct(one.seen.starts, edges));
    }

    private static final class Sample {
        private long[] values = new long[LEAST_OPERATIONS];
        private int size;

        private void take(final long beginNs, final long endNs) {
            if (size == values.length) {
                values = Arrays.copyOf(values, size * 2);
            }
            values[size++] = endNs - beginNs;
        }

        private long[] sorted() {
            final long[] sorted = Arrays.copyOf(values, size);
            Arrays.sort(sorted);
            return sorted;
        }
    }

    /** What a recorder has, read twenty times in all. */
    private static final class Recorded {
        private static final int INTERVALS = 20;
        private final long lengthNs;
        private final long[][] counts = new long[INTERVALS][SCALE.buckets()];

        private Recorded(final long untilNs) {
            lengthNs = untilNs / INTERVALS + 1;
        }

        /** An operation that ends after the last read is in flight then, and not recorded. */
        private void take(final long beginNs, final long endNs) {
            final int interval = (int) (endNs / lengthNs);
            if (interval < INTERVALS) {
                counts[interval][SCALE.bucketOf(endNs - beginNs)]++;
            }
        }

        private Corrected correct(final Starts starts, final long[] edges) {
            final Correction correction = new Correction(SCALE, starts);
            Corrected sum = null;
            int edge = 0;
            for (int i = 0; i < INTERVALS; i++) {
                int after = edge;
                while (after < edges.length && edges[after + 1] < (i + 1) * lengthNs) {
                    after += 2;
                }
                final Corrected one = correction.correct(
                    new Interval(lengthNs, counts[i], lengths(edges, edge, after), OptionalLong.empty()));
                sum = sum == null ? one : sum.plus(one);
                edge = after;
            }
            return sum;
        }

        private static long[] lengths(final long[] edges, final int from, final int to) {
            final long[] pausesNs = new long[(to - from) / 2];
            for (int n = 0; n < pausesNs.length; n++) {
                pausesNs[n] = edges[from + 2 * n + 1] - edges[from + 2 * n];
            }
            return pausesNs;
        }
    }
}
