package dev.parallax.benchmarks;

import dev.parallax.recorder.LabelledRecorder;
import dev.parallax.recorder.Recorder;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;

/** The cost of our recorders per record if the timestamps exist already, all threads on one series. */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class RecordCost {
    @State(Scope.Benchmark)
    public static class Ours {
        final Recorder recorder = new Recorder();
        final LabelledRecorder labelled = new LabelledRecorder(64, "method", "route", "status");
        final String[] statuses = {"200", "204", "404", "500"};
        final String[] routes = {"/", "/items", "/items/:id", "/orders"};
    }

    /** The cost of the loop and the values, which all others include. */
    @Benchmark
    public long floor(Values values) {
        return values.next();
    }

    @Benchmark
    public long clock(Values values) {
        return System.nanoTime() - values.next();
    }

    @Benchmark
    public void parallax(Values values, Ours ours) {
        ours.recorder.record(values.next());
    }

    /** As in an application: the record follows a timestamp, so nothing of it can be done beforehand. */
    @Benchmark
    public void parallaxAfterClock(Values values, Ours ours) {
        long now = System.nanoTime();
        ours.recorder.record(now - values.next(), now);
    }

    @Benchmark
    public void parallaxLabelled(Values values, Ours ours) {
        long ns = values.next();
        int n = (int) ns;
        ours.labelled.row("GET", ours.routes[n & 3], ours.statuses[n >> 2 & 3]).record(ns);
    }
}
