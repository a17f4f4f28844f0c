package dev.parallax.benchmarks;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.openjdk.jmh.profile.GCProfiler;
import org.openjdk.jmh.results.Result;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.Options;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;

/**
 * Runs all recorders in turn, in several rounds, so that other work of the host affects all alike, and prints for each
 * the cost per record without the loop around it: the median and the best of the rounds, with one thread and with two
 * on the same series.
 */
public final class Rounds {
    private static final int ROUNDS = Integer.getInteger("rounds", 5);
    private static final int[] THREADS = {1, 2};
    private static final String FLOOR = "RecordCost.floor";
    private static final String CLOCK = "RecordCost.clock";

    private Rounds() {}

    /** Times in ns, and bytes per record, of each benchmark. */
    private record Series(List<Double> times, List<Double> bytes) {
        Series() {
            this(new ArrayList<>(), new ArrayList<>());
        }
    }

    public static void main(String[] only) throws RunnerException {
        for (int threads : THREADS) {
            Map<String, Series> all = new LinkedHashMap<>();
            for (int round = 0; round < ROUNDS; round++) {
                for (RunResult result : new Runner(options(threads, only)).run()) {
                    add(all, result);
                }
                System.err.println("round " + (round + 1) + " of " + ROUNDS + ", threads " + threads);
            }
            print(threads, all);
        }
    }

    private static Options options(int threads, String[] only) {
        OptionsBuilder options = new OptionsBuilder();
        options.include("RecordCost");
        for (String name : only.length == 0 ? new String[] {"PeerCost"} : only) {
            options.include(name);
        }
        return options.forks(1)
                .threads(threads)
                .warmupIterations(3)
                .warmupTime(TimeValue.milliseconds(300))
                .measurementIterations(5)
                .measurementTime(TimeValue.milliseconds(200))
                .addProfiler(GCProfiler.class)
                .verbosity(VerboseMode.SILENT)
                .build();
    }

    private static void add(Map<String, Series> all, RunResult result) {
        String[] name = result.getParams().getBenchmark().split("\\.");
        Series series = all.computeIfAbsent(name[name.length - 2] + "." + name[name.length - 1], key -> new Series());
        series.times.add(result.getPrimaryResult().getScore());
        Result<?> bytes = result.getSecondaryResults().get("gc.alloc.rate.norm");
        series.bytes.add(bytes.getScore());
    }

    private static void print(int threads, Map<String, Series> all) {
        System.out.printf("%nThreads on one series: %d. ns a record over the loop, bytes a record%n", threads);
        System.out.printf("%-32s %8s %8s %8s%n", "", "median", "best", "bytes");
        Series floor = all.get(FLOOR);
        for (Map.Entry<String, Series> entry : all.entrySet()) {
            boolean hasClock = entry.getKey().endsWith("Clock");
            Series under = hasClock ? all.get(CLOCK) : floor;
            Series series = entry.getValue();
            double off = entry.getValue() == floor ? 0 : 1;
            System.out.printf(
                    "%-32s %8.1f %8.1f %8.0f%s%n",
                    entry.getKey(),
                    median(series.times) - off * median(under.times),
                    Collections.min(series.times) - off * Collections.min(under.times),
                    median(series.bytes),
                    hasClock ? "  over the clock" : "");
        }
    }

    private static double median(List<Double> values) {
        List<Double> sorted = new ArrayList<>(values);
        Collections.sort(sorted);
        return sorted.get(sorted.size() / 2);
    }
}
