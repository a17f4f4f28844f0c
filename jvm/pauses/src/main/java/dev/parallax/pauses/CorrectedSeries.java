package dev.parallax.pauses;

import dev.parallax.recorder.Durations;
import dev.parallax.recorder.Recorder;
import java.util.OptionalLong;

/**
 * A recorder that is read interval by interval, with a correction for what its pauses hid.
 * <p>
 * Recording is not affected. A caller that reads takes the pauses of the interval once, and passes them to all series:
 * <pre>
 *     long[] pausesNs = tally.take();
 *     Corrected answers = series.read(lengthNs, pausesNs);
 * </pre>
 * Not thread-safe.
 */
public final class CorrectedSeries {
    private static final Scale SCALE = new Scale() {
        @Override
        public int buckets() {
            return Durations.buckets();
        }

        @Override
        public long lowerNs(final int bucket) {
            return Durations.lowestNs(bucket);
        }
    };

    private final Recorder recorder;
    private final Correction correction;
    private Durations before;

    /**
     * Everything recorded from now on.
     *
     * @param recorder of the operations.
     * @param starts   what the start of its operations is.
     */
    public CorrectedSeries(final Recorder recorder, final Starts starts) {
        this.recorder = recorder;
        this.correction = new Correction(SCALE, starts);
        this.before = recorder.total();
    }

    /**
     * Reads what was recorded since the last call.
     * Costs what {@link Recorder#total} and {@link Correction#correct} cost.
     *
     * @param lengthNs since the last call, pauses included, in nanoseconds.
     * @param pausesNs the length of each pause that ended in it, in nanoseconds.
     * @return the recorded and the corrected counts.
     */
    public Corrected read(final long lengthNs, final long[] pausesNs) {
        final Durations now = recorder.total();
        final long[] counts = now.since(before).counts();
        before = now;
        return correction.correct(new Interval(lengthNs, counts, pausesNs, OptionalLong.empty()));
    }
}
