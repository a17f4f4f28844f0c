package dev.parallax.pauses;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.parallax.recorder.Recorder;
import org.junit.jupiter.api.Test;

/** If one of these fails, what a recorder's pauses hid is missing where its reader looks. */
final class CorrectedSeriesTest {
    private static final long MS = 1_000_000;

    /** Fifty per second for nine seconds of ten, and one second of stall: a tenth of all arrivals would have met it. */
    @Test
    void aPauseBetweenTwoOperationsIsInTheCorrected() {
        final Recorder recorder = new Recorder();
        recorder.record(5 * MS);
        final CorrectedSeries series = new CorrectedSeries(recorder, Starts.WHEN_FREE);
        for (int n = 0; n < 450; n++) {
            recorder.record(20 * MS);
        }
        final Corrected corrected = series.read(10_000 * MS, new long[] {1_000 * MS});
        assertEquals(450, sum(corrected.recorded()));
        assertEquals(50, corrected.added(), 0.01);
        assertEquals(20 * MS, corrected.quantileNs(0.89).orElseThrow(), 20 * MS / 100.0);
        // Half of those that met it waited longer than half of it, and the last thousandth all of it.
        assertEquals(520 * MS, corrected.quantileNs(0.95).orElseThrow(), 520 * MS / 100.0);
        assertEquals(1_020 * MS, corrected.quantileNs(1).orElseThrow(), 1_020 * MS / 100.0);
    }

    @Test
    void withoutPausesItIsWhatWasRecorded() {
        final Recorder recorder = new Recorder();
        final CorrectedSeries series = new CorrectedSeries(recorder, Starts.WHEN_FREE);
        recorder.record(3 * MS);
        recorder.record(0, 7 * MS);
        final Corrected first = series.read(1_000 * MS, new long[0]);
        assertArrayEquals(recorder.total().counts(), first.recorded());
        assertEquals(0, first.added());
        // What was read is not read again.
        assertEquals(0, sum(series.read(1_000 * MS, new long[0]).recorded()));
    }

    @Test
    void anIntendedStartIsNotCorrected() {
        final Recorder recorder = new Recorder();
        final CorrectedSeries series = new CorrectedSeries(recorder, Starts.INTENDED);
        recorder.record(3 * MS);
        final Corrected corrected = series.read(1_000 * MS, new long[] {500 * MS});
        assertTrue(corrected.refused().isPresent());
        assertEquals(0, corrected.added());
    }

    private static long sum(final long[] counts) {
        long sum = 0;
        for (final long count : counts) {
            sum += count;
        }
        return sum;
    }
}
