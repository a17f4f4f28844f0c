package dev.parallax.pauses;

import java.util.Optional;
import java.util.OptionalLong;

/** Recorded counts, and next to them the corrected ones. The recorded counts are never changed. */
public final class Corrected {
    private final Scale scale;
    private final long[] recorded;
    /** The difference between corrected and recorded count of each bucket; null if nothing was corrected. */
    private final double[] change;
    private final Optional<String> refused;

    Corrected(final Scale scale, final long[] recorded, final double[] change, final Optional<String> refused) {
        this.scale = scale;
        this.recorded = recorded;
        this.change = change;
        this.refused = refused;
    }

    /** {@return why there is no correction, if there is none; counts are then as recorded} */
    public Optional<String> refused() {
        return refused;
    }

    /** {@return the counts as recorded, by bucket} */
    public long[] recorded() {
        return recorded.clone();
    }

    /**
     * {@return the corrected count of a bucket, a fraction; exactly as recorded if there was no pause}
     *
     * @param bucket of the scale.
     */
    public double corrected(final int bucket) {
        return change == null ? recorded[bucket] : Math.max(0, recorded[bucket] + change[bucket]);
    }

    /** {@return how many operations the correction added, minus those it removed} */
    public double added() {
        double sum = 0;
        for (int i = 0; i < recorded.length; i++) {
            sum += corrected(i) - recorded[i];
        }
        return sum;
    }

    /**
     * {@return recorded and corrected counts of both together}
     *
     * @param other another interval of the same series, or another series of the same scale.
     */
    public Corrected plus(final Corrected other) {
        final long[] sum = recorded.clone();
        final double[] changes = new double[sum.length];
        for (int i = 0; i < sum.length; i++) {
            sum[i] += other.recorded[i];
            changes[i] = change(i) + other.change(i);
        }
        return new Corrected(scale, sum, changes, refused.isPresent() ? refused : other.refused);
    }

    private double change(final int bucket) {
        return change == null ? 0 : change[bucket];
    }

    /**
     * {@return the corrected counts as whole numbers, for histograms that hold no others} The sum up to any bucket is
     * off by at most half an operation.
     */
    public long[] rounded() {
        final long[] whole = new long[recorded.length];
        double exact = 0;
        long given = 0;
        for (int i = 0; i < whole.length; i++) {
            exact += corrected(i);
            whole[i] = Math.round(exact) - given;
            given += whole[i];
        }
        return whole;
    }

    /**
     * The duration that the share {@code quantile} of the corrected operations does not exceed: the largest of its
     * bucket.
     *
     * @param quantile from 0 to 1.
     * @return nanoseconds; empty if nothing was recorded.
     */
    public OptionalLong quantileNs(final double quantile) {
        double total = 0;
        for (int i = 0; i < recorded.length; i++) {
            total += corrected(i);
        }
        double below = 0;
        for (int i = 0; i < recorded.length; i++) {
            below += corrected(i);
            if (below > 0 && below >= quantile * total) {
                return OptionalLong.of(scale.lowerNs(i + 1) - 1);
            }
        }
        return OptionalLong.empty();
    }

    /**
     * The longest corrected duration in whole operations: the largest of its bucket. Longer ones sum up to less than
     * half an operation: such as the slowest ever seen, in the longest pause; {@link #quantileNs quantileNs(1)}
     * includes it however unlikely it is that the two met.
     *
     * @return nanoseconds; empty if there is less than half an operation.
     */
    public OptionalLong maxNs() {
        final long[] whole = rounded();
        for (int i = whole.length - 1; i >= 0; i--) {
            if (whole[i] > 0) {
                return OptionalLong.of(scale.lowerNs(i + 1) - 1);
            }
        }
        return OptionalLong.empty();
    }
}
