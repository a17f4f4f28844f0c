package dev.parallax.springboot;

import dev.parallax.httpclient5.HttpClientMetrics;
import dev.parallax.httpclient5.ServerMetrics;
import dev.parallax.recorder.Durations;
import dev.parallax.recorder.LabelledRecorder;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.TreeMap;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.HistogramLogReader;

/** What is measured, as text and numbers to compare with. */
final class Seen {
    private static final long BOUND_NS = 5_000_000_000L;

    private Seen() {}

    static ServerMetrics only(HttpClientMetrics metrics) {
        if (metrics.servers().size() != 1) {
            throw new AssertionError("servers: " + metrics.servers().size());
        }
        return metrics.servers().get(0);
    }

    /** As "{GET 200=4}", in order. */
    static String rows(LabelledRecorder labelled) {
        TreeMap<String, Long> counts = new TreeMap<>();
        for (LabelledRecorder.Row row : labelled.rows()) {
            counts.put(String.join(" ", row.values()), row.recorder().total().count());
        }
        return counts.toString();
    }

    static Durations all(LabelledRecorder labelled) {
        Durations all = labelled.other().total();
        for (LabelledRecorder.Row row : labelled.rows()) {
            all = all.plus(row.recorder().total());
        }
        return all;
    }

    /** The only one that is in a folder. */
    static Path only(Path folder) throws IOException {
        try (Stream<Path> all = Files.list(folder)) {
            List<Path> paths = all.toList();
            if (paths.size() != 1) {
                throw new AssertionError("in " + folder + ": " + paths);
            }
            return paths.get(0);
        }
    }

    /** All intervals of a log of a run record. */
    static long count(Path record, String log) throws IOException {
        long count = 0;
        try (HistogramLogReader reader = new HistogramLogReader(record.resolve(log + ".hlog").toFile())) {
            while (reader.hasNext()) {
                count += ((Histogram) reader.nextIntervalHistogram()).getTotalCount();
            }
        }
        return count;
    }

    static double ms(Durations durations, int rank) {
        return durations.atRank(rank).orElseThrow(() -> new AssertionError("no rank " + rank)) / 1e6;
    }

    static void until(String what, BooleanSupplier isSo) throws InterruptedException {
        long endNs = System.nanoTime() + BOUND_NS;
        while (!isSo.getAsBoolean()) {
            if (System.nanoTime() - endNs > 0) {
                throw new AssertionError("not within 5 s: " + what);
            }
            Thread.sleep(1);
        }
    }
}
