package dev.parallax.vertx;

import dev.parallax.recorder.Counter;
import dev.parallax.recorder.Recorder;
import dev.parallax.recorder.UpDownCounter;
import java.util.Map;

/** Measures a client, for example of a database, and one server that it calls; also the queue of a Vert.x 4 client. */
public final class Client {
    private final Recorder times;
    private final UpDownCounter pending;
    private final Counter resets;

    /**
     * Creates the series.
     *
     * @param options what is measured
     * @param type of the client, for example {@code sql}
     * @param labels remote address and namespace; disabled labels are left out
     */
    public Client(SeriesOptions options, String type, Map<Label, String> labels) {
        Domain domain = new Domain(options, type);
        Map<Label, String> on = Exchanges.on(domain, labels);
        times = domain.durations("processing.time", "Processing time, from request start to response end", on);
        pending = domain.upDownCounter("processing.pending", "Number of elements being processed", on);
        resets = domain.counter("resets", "Total number of resets", on);
    }

    /**
     * A request begins.
     *
     * @return when, from {@link System#nanoTime()}
     */
    public Long begin() {
        pending.increment();
        return System.nanoTime();
    }

    /**
     * The response has ended.
     *
     * @param sinceNs as returned by {@link #begin()}
     */
    public void end(Long sinceNs) {
        pending.decrement();
        times.recordSince(sinceNs);
    }

    /**
     * The request was abandoned.
     *
     * @param sinceNs as returned by {@link #begin()}
     */
    public void reset(Long sinceNs) {
        end(sinceNs);
        resets.increment();
    }

    /** Requests that wait for a connection to one server. Only the clients of Vert.x 4 report them. */
    public static final class Queue {
        private final Recorder waits;
        private final UpDownCounter pending;

        /**
         * Creates the series.
         *
         * @param options what is measured
         * @param domain {@code http.client}, or the type of the client
         * @param labels as for the client's other series; disabled labels are left out
         */
        public Queue(SeriesOptions options, String domain, Map<Label, String> labels) {
            Domain in = new Domain(options, domain);
            Map<Label, String> on = Exchanges.on(in, labels);
            waits = in.durations("queue.time", "Time spent in queue before being processed", on);
            pending = in.upDownCounter("queue.pending", "Number of pending elements in queue", on);
        }

        /**
         * A request starts to wait.
         *
         * @return when, from {@link System#nanoTime()}
         */
        public Long enter() {
            pending.increment();
            return System.nanoTime();
        }

        /**
         * A request stops waiting.
         *
         * @param sinceNs as returned by {@link #enter()}
         */
        public void leave(Long sinceNs) {
            pending.decrement();
            waits.recordSince(sinceNs);
        }
    }
}
