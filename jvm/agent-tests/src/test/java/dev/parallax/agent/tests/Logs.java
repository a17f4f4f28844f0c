package dev.parallax.agent.tests;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import org.HdrHistogram.EncodableHistogram;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.HistogramIterationValue;
import org.HdrHistogram.HistogramLogReader;

/** The logs of a record, read by HdrHistogram's own reader. */
final class Logs {
    private Logs() {}

    /** All values of all logs whose name begins with {@code name}, in milliseconds, sorted. */
    static List<Double> ms(Path record, String name) throws IOException {
        List<Double> all = new ArrayList<>();
        try (DirectoryStream<Path> logs = Files.newDirectoryStream(record, name + "*.hlog")) {
            for (Path log : logs) {
                for (HistogramIterationValue value : read(log).recordedValues()) {
                    for (long n = 0; n < value.getCountAddedInThisIterationStep(); n++) {
                        all.add(value.getValueIteratedTo() / 1e6);
                    }
                }
            }
        }
        all.sort(null);
        return all;
    }

    /** The largest value that a log may report for this one: with two digits, it reports the end of the bucket. */
    static double upTo(double ms) {
        return ms * (1 + 1.0 / 128);
    }

    /** The sum of each log whose name begins with {@code name}, in milliseconds, by the rest of its name. */
    static TreeMap<String, Double> sums(Path record, String name) throws IOException {
        TreeMap<String, Double> sums = new TreeMap<>();
        try (DirectoryStream<Path> logs = Files.newDirectoryStream(record, name + "*.hlog")) {
            for (Path log : logs) {
                Histogram all = read(log);
                String rest = log.getFileName().toString().substring(name.length()).replace(".hlog", "");
                sums.put(rest, all.getMean() * all.getTotalCount() / 1e6);
            }
        }
        return sums;
    }

    private static Histogram read(Path log) throws FileNotFoundException {
        Histogram all = new Histogram(2);
        try (HistogramLogReader reader = new HistogramLogReader(log.toFile())) {
            EncodableHistogram next = reader.nextIntervalHistogram();
            while (next != null) {
                all.add((Histogram) next);
                next = reader.nextIntervalHistogram();
            }
        }
        return all;
    }
}
