package dev.parallax.recorder;

import java.math.BigInteger;
import java.util.Arrays;

/**
 * Where a duration is counted: buckets that convert to other tools' buckets without loss.
 *
 * <p>A conversion from one set of buckets to another is without loss when each bucket of the first lies wholly in one
 * bucket of the second: then a count can be moved, and what comes out is what the other tool would have counted itself.
 * So the boundaries here are the union of two sets:
 *
 * <ul>
 *   <li>those of HdrHistogram with two significant digits: each value up to 255 alone, then 128 buckets of equal width
 *       to a power of two. One digit is a coarsening of that.
 *   <li>those of an exponential histogram of scale (schema) 5 <em>in seconds</em>, 32 buckets to a power of two: the unit
 *       in which Prometheus' native histograms and OpenTelemetry's exponential ones hold durations by convention. Smaller
 *       scales are coarsenings of that, down to {@code -4}. There a boundary belongs to the bucket below it.
 * </ul>
 *
 * <p>Together 160 buckets to a power of two: a value is known to one part in 128. What is finer cannot be had from these:
 * three digits of HdrHistogram, scale 6.
 *
 * <p>Values are whole nanoseconds, so "lies wholly in" is said of whole numbers.
 */
final class Buckets {
    /** The longest duration that has a bucket of its own kind: an hour, as in the run record. */
    static final long LONGEST = 3_600_000_000_000L;

    /** The finest scale (OpenTelemetry) or schema (Prometheus) that counts convert to. */
    static final int SCALE = 5;

    /** Values below have a bucket each. */
    static final int EXACT = 256;

    /** Buckets of one power of two, from {@link #EXACT} on. */
    static final int OCTAVE = 160;

    private static final int EXACT_BITS = 8;
    private static final int LINEAR = 128;
    private static final int LINEAR_BITS = 7;

    /**
     * The exponential boundaries from {@code 2^29} to {@code 2^30} ns: {@code 2^(k / 32)} s for 32 numbers {@code k} from
     * this one on, as {@code 2^29 ns} lie between the boundaries -29 and -28.
     */
    private static final int FIRST_BOUNDARY = -28;

    private static final int SECOND_BITS = 29;

    /** Each of them as a mantissa, rounded down. In every other power of two they are the same. */
    private static final long[] BOUNDARY = new long[1 << SCALE];

    /**
     * For each of the 128 equal parts of a power of two: the least mantissa beyond the boundary in it. Mantissas are
     * values shifted until the top bit is set, so as signed numbers they are negative and in order; where a part has no
     * boundary stands a number beyond all of them.
     */
    private static final long[] SPLIT = new long[LINEAR];

    /** How many buckets of a power of two begin before the part does. */
    private static final int[] BEFORE = new int[LINEAR];

    /** How many buckets there are. */
    static final int COUNT;

    static {
        Arrays.fill(SPLIT, Long.MAX_VALUE);
        for (int i = 0; i < 1 << SCALE; i++) {
            BOUNDARY[i] = boundary(FIRST_BOUNDARY + i);
            long split = BOUNDARY[i] + 1;
            SPLIT[part(split)] = split;
        }
        for (int part = 1, before = 0; part < LINEAR; part++) {
            before += SPLIT[part - 1] == Long.MAX_VALUE ? 1 : 2;
            BEFORE[part] = before;
        }
        COUNT = index(LONGEST) + 1;
    }

    private Buckets() {}

    /**
     * The bucket of {@code ns}, from 0 to {@link #COUNT} - 1; {@code ns} is from 0 to {@link #LONGEST}.
     *
     * <p>Cost: two loads from tables of 1.5 KiB and no branch beside the one for short durations.
     */
    static int index(long ns) {
        if (ns < EXACT) {
            return (int) ns;
        }
        int shift = Long.numberOfLeadingZeros(ns);
        long mantissa = ns << shift;
        int part = part(mantissa);
        int octave = (63 - EXACT_BITS) - shift;
        return EXACT + octave * OCTAVE + BEFORE[part] + (mantissa >= SPLIT[part] ? 1 : 0);
    }

    /** The least value of a bucket. One in which no whole number lies begins beyond its end: there are a few below a millisecond. */
    static long lowest(int index) {
        if (index < EXACT) {
            return index;
        }
        int octave = (index - EXACT) / OCTAVE;
        int place = (index - EXACT) % OCTAVE;
        int part = partAt(place);
        int exponent = octave + EXACT_BITS;
        if (BEFORE[part] == place) {
            return (1L << exponent) + ((long) part << (exponent - LINEAR_BITS));
        }
        // The least whole number whose mantissa is not below the split.
        int shift = 63 - exponent;
        return ((SPLIT[part] - 1) >>> shift) + 1;
    }

    /** The largest value of a bucket. */
    static long highest(int index) {
        return lowest(index + 1) - 1;
    }

    /**
     * The bucket of an exponential histogram in which bucket {@code index} lies, at {@code scale} up to {@link #SCALE}:
     * {@code i} such that its values are above {@code 2^(i / 2^scale)} s and at most {@code 2^((i + 1) / 2^scale)} s. That
     * is OpenTelemetry's number; Prometheus' is one more. Not for bucket 0, whose value zero has none.
     */
    static int exponential(int index, int scale) {
        long value = lowest(index);
        int exponent = 63 - Long.numberOfLeadingZeros(value);
        long mantissa = value << (63 - exponent);
        int below = 0;
        while (below < BOUNDARY.length && mantissa > BOUNDARY[below]) {
            below++;
        }
        int last = ((exponent - SECOND_BITS) << SCALE) + FIRST_BOUNDARY + below - 1;
        return last >> (SCALE - scale);
    }

    /** The mantissa of {@code 2^(k / 32)} s, rounded down, exactly: by whole numbers' square roots. */
    private static long boundary(int k) {
        // The mantissa of a second, to the power 32, has more than enough factors of two for a k below zero.
        BigInteger root = BigInteger.valueOf(1_000_000_000).shiftLeft(63 - SECOND_BITS).pow(1 << SCALE).shiftLeft(k);
        for (int n = 0; n < SCALE; n++) {
            root = root.sqrt();
        }
        return root.longValue();
    }

    private static int part(long mantissa) {
        return (int) (mantissa >>> (63 - LINEAR_BITS)) & (LINEAR - 1);
    }

    private static int partAt(int place) {
        int part = Arrays.binarySearch(BEFORE, place);
        return part >= 0 ? part : -part - 2;
    }
}
