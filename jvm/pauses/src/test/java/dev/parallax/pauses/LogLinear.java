package dev.parallax.pauses;

/** Buckets like HdrHistogram's: below 256 ns one each, then 128 per octave, so at most 0.8 % wide. */
final class LogLinear implements Scale {
    private static final int BITS = 7;
    private static final int PER_OCTAVE = 1 << BITS;
    private static final int OCTAVES = 36;

    @Override
    public int buckets() {
        return PER_OCTAVE * OCTAVES;
    }

    @Override
    public long lowerNs(final int bucket) {
        if (bucket < PER_OCTAVE) {
            return bucket;
        }
        final int octave = bucket / PER_OCTAVE - 1;
        return (long) (bucket % PER_OCTAVE + PER_OCTAVE) << octave;
    }

    int bucketOf(final long ns) {
        if (ns < PER_OCTAVE) {
            return (int) ns;
        }
        final int octave = 63 - Long.numberOfLeadingZeros(ns) - BITS;
        return octave * PER_OCTAVE + (int) (ns >> octave);
    }
}
