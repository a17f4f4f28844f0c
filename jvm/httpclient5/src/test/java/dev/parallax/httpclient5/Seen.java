package dev.parallax.httpclient5;

import dev.parallax.recorder.Durations;
import dev.parallax.recorder.LabelledRecorder;
import java.util.List;
import java.util.TreeMap;
import java.util.function.BooleanSupplier;

/** The metrics of one server, as text and numbers to compare with. */
final class Seen {
    private static final long BOUND_NS = 5_000_000_000L;

    private Seen() {}

    static ServerMetrics only(HttpClientMetrics metrics) {
        List<ServerMetrics> servers = metrics.servers();
        if (servers.size() != 1) {
            throw new AssertionError("servers: " + servers.size());
        }
        return servers.get(0);
    }

    /** As "GET 200: 4", in order; "other" beyond the limit of rows. */
    static String rows(LabelledRecorder labelled) {
        TreeMap<String, Long> counts = new TreeMap<>();
        for (LabelledRecorder.Row row : labelled.rows()) {
            counts.put(String.join(" ", row.values()), row.recorder().total().count());
        }
        if (labelled.other().total().count() > 0) {
            counts.put("other", labelled.other().total().count());
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

    static double ms(Durations durations, int rank) {
        return durations.atRank(rank).orElseThrow(() -> new AssertionError("no rank " + rank)) / 1e6;
    }

    /** No caller waits and nothing is lent: everything counted up was counted down. */
    static boolean isAtRest(HttpClientMetrics metrics) {
        return metrics.servers().stream().allMatch(server -> server.pending() == 0 && server.active() == 0);
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
