package dev.parallax.benchmarks;

import dev.parallax.recorder.Labelled;
import dev.parallax.recorder.Recorder;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;

/** What a record costs when the stamps are there: ours, and the floor under it. */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class RecordCost {
    /** Log-normal around 200 us, made beforehand: what recording costs must not hide behind making values. */
    @State(Scope.Thread)
    public static class Values {
        private final long[] values = new long[1 << 12];
        private int at;

        public Values() {
            SplittableRandom random = new SplittableRandom(7);
            for (int i = 0; i < values.length; i++) {
                double normal = 0;
                for (int n = 0; n < 12; n++) {
                    normal += random.nextDouble();
                }
                values[i] = (long) (200_000 * Math.exp(normal - 6));
            }
        }

        long next() {
            return values[at++ & values.length - 1];
        }
    }

    @State(Scope.Benchmark)
    public static class Ours {
        final Recorder recorder = new Recorder();
        final Labelled labelled = new Labelled(64, "method", "route", "status");
        final String[] statuses = {"200", "204", "404", "500"};
        final String[] routes = {"/", "/items", "/items/:id", "/orders"};
    }

    /** What the loop and the values cost: to be taken off all others. */
    @Benchmark
    public long floor(Values values) {
        return values.next();
    }

    @Benchmark
    public long clock() {
        return System.nanoTime();
    }

    @Benchmark
    public void parallax(Values values, Ours ours) {
        ours.recorder.record(values.next());
    }

    @Benchmark
    public void parallaxWithClock(Values values, Ours ours) {
        ours.recorder.recordSince(values.next());
    }

    @Benchmark
    public void parallaxLabelled(Values values, Ours ours) {
        long ns = values.next();
        int n = (int) ns;
        ours.labelled.row("GET", ours.routes[n & 3], ours.statuses[n >> 2 & 3]).record(ns);
    }
}
