package dev.parallax.recorder;

import java.math.BigInteger;
import java.util.Arrays;

/**
 * Maps durations to buckets that convert to other tools' buckets without loss.
 *
 * <p>A conversion is lossless if each source bucket is wholly inside one target bucket: its count can then be moved,
 * and the result is what the other tool would have counted itself. The boundaries are therefore the union of two sets:
 *
 * <ul>
 *   <li>HdrHistogram's with two significant digits: one bucket per value up to 255, then 128 buckets of equal width per
 *       power of two. One significant digit is a coarsening of that.
 *   <li>those of an exponential histogram of scale (schema) 5 <em>in seconds</em>, 32 buckets per power of two: seconds
 *       are the convention of Prometheus' native histograms and of OpenTelemetry's exponential ones. Smaller scales,
 *       down to {@code -4}, are coarsenings of that. A boundary belongs to the bucket below it.
 * </ul>
 *
 * <p>Together these are 160 buckets per power of two, so a value is known to one part in 128. Finer formats cannot be
 * derived: neither three significant digits nor scale 6.
 *
 * <p>Values are whole nanoseconds, so "is wholly inside" refers to whole numbers.
 */
final class Buckets {
    /** The longest duration with a bucket of its own: one hour, as in the run record. */
    static final long LONGEST = 3_600_000_000_000L;

    /** The finest scale (OpenTelemetry) or schema (Prometheus) that counts convert to. */
    static final int SCALE = 5;

    /** Each value below this has its own bucket. */
    static final int EXACT = 256;

    /** Buckets per power of two, from {@link #EXACT} on. */
    static final int OCTAVE = 160;

    private static final int EXACT_BITS = 8;
    private static final int LINEAR = 128;

    /** Number of low mantissa bits that are zero for all values up to {@link #LONGEST}. */
    private static final int VALUE_FREE_BITS = 22;

    private static final int LINEAR_BITS = 7;

    /**
     * The exponential boundaries from {@code 2^29} to {@code 2^30} ns are {@code 2^(k / 32)} s for 32 consecutive
     * {@code k}, of which this is the first: {@code 2^29 ns} is between boundaries -29 and -28.
     */
    private static final int FIRST_BOUNDARY = -28;

    private static final int SECOND_BITS = 29;

    /** Mantissas of these boundaries, rounded down; the same for every power of two. */
    private static final long[] BOUNDARY = new long[1 << SCALE];

    /**
     * One entry for each of the 128 equal parts of a power of two, packed into one number so that a lookup is one load:
     * the low byte is the number of buckets before the part, the bits above are the boundary inside the part. Mantissas
     * are values shifted left until the top bit is set, so as signed numbers they are negative and sorted. No value has
     * more than 42 bits, so the low 22 bits of a mantissa are zero and the low byte cannot affect a comparison.
     */
    private static final long[] PART = new long[LINEAR];

    /** Marks a part without a boundary: no mantissa is above it. */
    private static final long NONE = -1L << VALUE_FREE_BITS;

    /** Number of buckets. */
    static final int COUNT;

    static {
        Arrays.fill(PART, NONE);
        for (int i = 0; i < 1 << SCALE; i++) {
            BOUNDARY[i] = boundary(FIRST_BOUNDARY + i);
            PART[part(BOUNDARY[i])] = BOUNDARY[i] & NONE;
        }
        int before = 0;
        for (int part = 0; part < LINEAR; part++) {
            int buckets = PART[part] == NONE ? 1 : 2;
            PART[part] |= before;
            before += buckets;
        }
        COUNT = index(LONGEST) + 1;
    }

    private Buckets() {}

    /**
     * Returns the bucket of {@code ns}, from 0 to {@link #COUNT} - 1; {@code ns} must be from 0 to {@link #LONGEST}.
     *
     * <p>Cost: one load from a table of 1 KiB.
     */
    static int index(long ns) {
        return ns < EXACT ? (int) ns : indexOfLong(ns);
    }

    /** Like {@link #index}, for values of {@link #EXACT} or more, which nearly all durations are; has no branch. */
    static int indexOfLong(long ns) {
        int shift = Long.numberOfLeadingZeros(ns);
        long mantissa = ns << shift;
        long part = PART[part(mantissa)];
        // Both are negative, so the difference is negative if the mantissa is above the boundary.
        int isAbove = (int) ((part - mantissa) >>> 63);
        int octave = (63 - EXACT_BITS) - shift;
        return EXACT + octave * OCTAVE + before(part) + isAbove;
    }

    /**
     * Returns the smallest value of a bucket. For the few buckets below a millisecond that contain no whole number, it
     * is above the largest value.
     */
    static long lowest(int index) {
        return Bounds.LOWEST[index];
    }

    private static long computeLowest(int index) {
        if (index < EXACT) {
            return index;
        }
        int octave = (index - EXACT) / OCTAVE;
        int place = (index - EXACT) % OCTAVE;
        int exponent = octave + EXACT_BITS;
        int part = 0;
        while (part + 1 < LINEAR && before(PART[part + 1]) <= place) {
            part++;
        }
        if (before(PART[part]) == place) {
            return (1L << exponent) + ((long) part << (exponent - LINEAR_BITS));
        }
        // The smallest whole number whose mantissa is above the boundary; the low bits of the boundary do not matter
        // here either.
        return ((PART[part] & NONE) >>> (63 - exponent)) + 1;
    }

    /** Returns the largest value of a bucket. */
    static long highest(int index) {
        return lowest(index + 1) - 1;
    }

    /**
     * Returns the exponential bucket that contains bucket {@code index}, at a {@code scale} of up to {@link #SCALE}:
     * the {@code i} such that values are above {@code 2^(i / 2^scale)} s and at most {@code 2^((i + 1) / 2^scale)} s.
     * This is OpenTelemetry's numbering; Prometheus' is one higher. Not defined for bucket 0, the value zero.
     */
    static int exponential(int index, int scale) {
        return exponential(index) >> (SCALE - scale);
    }

    /** The same at the finest scale. */
    static int exponential(int index) {
        return Bounds.EXPONENTIAL[index];
    }

    /**
     * Like {@link #exponential(int)}, for values already in the unit of the exponential histogram. Decided by the
     * smallest value of the bucket; larger ones may belong to the next exponential bucket.
     */
    static int power(int index) {
        return Bounds.POWER[index];
    }

    /** Tables per bucket, computed on first use. */
    private static final class Bounds {
        static final long[] LOWEST = new long[COUNT + 1];
        static final int[] EXPONENTIAL = new int[COUNT];
        static final int[] POWER = new int[COUNT];

        static {
            long[] powers = new long[1 << SCALE];
            for (int k = 0; k < powers.length; k++) {
                powers[k] = mantissa(BigInteger.ONE.shiftLeft(63), k);
            }
            for (int index = 0; index <= COUNT; index++) {
                LOWEST[index] = computeLowest(index);
            }
            for (int index = 1; index < COUNT; index++) {
                EXPONENTIAL[index] = last(LOWEST[index], BOUNDARY) - (SECOND_BITS << SCALE) + FIRST_BOUNDARY;
                POWER[index] = last(LOWEST[index], powers);
            }
        }

        private Bounds() {}

        /**
         * Returns the number of boundaries, from that of 1 on, that are below {@code value}, minus one; {@code
         * mantissas} are the boundaries within one power of two.
         */
        private static int last(long value, long[] mantissas) {
            int exponent = 63 - Long.numberOfLeadingZeros(value);
            long mantissa = value << (63 - exponent);
            int below = 0;
            // Both are negative and sorted.
            while (below < mantissas.length && mantissa > mantissas[below]) {
                below++;
            }
            return (exponent << SCALE) + below - 1;
        }
    }

    /** Returns the mantissa of {@code 2^(k / 32)} s, rounded down, exactly. */
    private static long boundary(int k) {
        return mantissa(BigInteger.valueOf(1_000_000_000).shiftLeft(63 - SECOND_BITS), k);
    }

    /** Returns the mantissa of {@code unit} times {@code 2^(k / 32)}, rounded down; exact, by integer square roots. */
    private static long mantissa(BigInteger unit, int k) {
        // A second to the power of 32 has more than enough factors of two for negative k.
        BigInteger root = unit.pow(1 << SCALE).shiftLeft(k);
        for (int n = 0; n < SCALE; n++) {
            root = root.sqrt();
        }
        return root.longValue();
    }

    private static int part(long mantissa) {
        return (int) (mantissa >>> (63 - LINEAR_BITS)) & (LINEAR - 1);
    }

    private static int before(long part) {
        return (int) part & 0xff;
    }
}
