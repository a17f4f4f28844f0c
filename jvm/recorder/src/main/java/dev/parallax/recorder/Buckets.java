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

    /** Of the 64 bits of a mantissa those that are zero for all values up to {@link #LONGEST}. */
    private static final int VALUE_FREE_BITS = 22;

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
     * For each of the 128 equal parts of a power of two, in one number so that there is one load: in the low byte how many
     * of its buckets begin before the part, above that the boundary within the part. Mantissas are values shifted until
     * the top bit is set, so as signed numbers they are negative and in order. As no value has more than 42 bits, the low
     * 22 of a mantissa are zero: what stands there decides no comparison.
     */
    private static final long[] PART = new long[LINEAR];

    /** No boundary: no mantissa is above it. */
    private static final long NONE = -1L << VALUE_FREE_BITS;

    /** How many buckets there are. */
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
     * The bucket of {@code ns}, from 0 to {@link #COUNT} - 1; {@code ns} is from 0 to {@link #LONGEST}.
     *
     * <p>Cost: one load from a table of 1 KiB.
     */
    static int index(long ns) {
        return ns < EXACT ? (int) ns : indexOfLong(ns);
    }

    /** As {@link #index}, of {@link #EXACT} or more: what nearly all durations are, so there is no branch at all. */
    static int indexOfLong(long ns) {
        int shift = Long.numberOfLeadingZeros(ns);
        long mantissa = ns << shift;
        long part = PART[part(mantissa)];
        // Both are negative, so their difference is below zero when the mantissa is above the boundary.
        int isAbove = (int) ((part - mantissa) >>> 63);
        int octave = (63 - EXACT_BITS) - shift;
        return EXACT + octave * OCTAVE + before(part) + isAbove;
    }

    /** The least value of a bucket. One in which no whole number lies begins beyond its end: there are a few below a millisecond. */
    static long lowest(int index) {
        return Known.LOWEST[index];
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
        // The least whole number whose mantissa is above the boundary; the boundary's low bits decide nothing here either.
        return ((PART[part] & NONE) >>> (63 - exponent)) + 1;
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
        return exponential(index) >> (SCALE - scale);
    }

    /** As above, at the finest scale. */
    static int exponential(int index) {
        return Known.EXPONENTIAL[index];
    }

    /**
     * As {@link #exponential(int)} where the values are no nanoseconds but what the exponential histogram is of. Of the
     * bucket's least value: its others may belong to the next one.
     */
    static int power(int index) {
        return Known.POWER[index];
    }

    /** What is known of each bucket; made when it is first read. */
    private static final class Known {
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

        private Known() {}

        /**
         * How many boundaries from that of 1 on lie below {@code value}, less one; {@code mantissas} are those of a power of
         * two.
         */
        private static int last(long value, long[] mantissas) {
            int exponent = 63 - Long.numberOfLeadingZeros(value);
            long mantissa = value << (63 - exponent);
            int below = 0;
            // Both are negative, so in order.
            while (below < mantissas.length && mantissa > mantissas[below]) {
                below++;
            }
            return (exponent << SCALE) + below - 1;
        }
    }

    /** The mantissa of {@code 2^(k / 32)} s, rounded down, exactly. */
    private static long boundary(int k) {
        return mantissa(BigInteger.valueOf(1_000_000_000).shiftLeft(63 - SECOND_BITS), k);
    }

    /** That of {@code unit} times {@code 2^(k / 32)}, rounded down, exactly: by whole numbers' square roots. */
    private static long mantissa(BigInteger unit, int k) {
        // To the power 32 a second has more than enough factors of two for a k below zero.
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
