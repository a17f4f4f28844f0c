package dev.parallax.springboot;

import dev.parallax.httpclient5.HttpClientMetrics;
import dev.parallax.httpclient5.ServerMetrics;
import dev.parallax.recorder.Durations;
import dev.parallax.recorder.Labelled;
import java.util.TreeMap;
import java.util.function.BooleanSupplier;

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
    static String rows(Labelled labelled) {
        TreeMap<String, Long> counts = new TreeMap<>();
        for (Labelled.Row row : labelled.rows()) {
            counts.put(String.join(" ", row.values()), row.recorder().total().count());
        }
        return counts.toString();
    }

    static Durations all(Labelled labelled) {
        Durations all = labelled.other().total();
        for (Labelled.Row row : labelled.rows()) {
            all = all.plus(row.recorder().total());
        }
        return all;
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
