package dev.parallax.benchmarks;

import java.util.SplittableRandom;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;

/** Log-normal around 200 us, generated beforehand, so that the cost of recording is not hidden by generating values. */
@State(Scope.Thread)
public class Values {
    private final long[] values = new long[1 << 12];
    private int at;

    public Values() {
        SplittableRandom random = new SplittableRandom(7);
        for (int i = 0; i < values.length; i++) {
            values[i] = (long) (200_000 * Math.exp(0.7 * normal(random)));
        }
    }

    /** The sum of twelve evenly distributed numbers: close enough, and the same everywhere for the same seed. */
    private static double normal(SplittableRandom random) {
        double sum = 0;
        for (int n = 0; n < 12; n++) {
            sum += random.nextDouble();
        }
        return sum - 6;
    }

    long next() {
        return values[at++ & values.length - 1];
    }
}
