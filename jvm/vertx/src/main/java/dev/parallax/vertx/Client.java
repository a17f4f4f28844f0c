package dev.parallax.vertx;

import dev.parallax.recorder.Counter;
import dev.parallax.recorder.Recorder;
import dev.parallax.recorder.UpDownCounter;
import java.util.Map;

/** A client of any protocol, of a database for one, and one server that it asks; and the queue of an HTTP client. */
public final class Client {
    private final Recorder times;
    private final UpDownCounter pending;
    private final Counter resets;

    /**
     * Of a type.
     *
     * @param options as of all
     * @param type as {@code sql}
     * @param labels remote address and namespace; those that are off are left out
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
     * @return since when, of {@link System#nanoTime()}
     */
    public Long begin() {
        pending.increment();
        return System.nanoTime();
    }

    /**
     * Its response has ended.
     *
     * @param sinceNs that {@link #begin()} returned
     */
    public void end(Long sinceNs) {
        pending.decrement();
        times.recordSince(sinceNs);
    }

    /**
     * It was given up.
     *
     * @param sinceNs that {@link #begin()} returned
     */
    public void reset(Long sinceNs) {
        end(sinceNs);
        resets.increment();
    }

    /** What waits for a connection to one server, where the client itself tells: in Vert.x 4. */
    public static final class Queue {
        private final Recorder waits;
        private final UpDownCounter pending;

        /**
         * Of a client.
         *
         * @param options as of all
         * @param domain {@code http.client}, or the type of the client
         * @param labels as of the client's other series; those that are off are left out
         */
        public Queue(SeriesOptions options, String domain, Map<Label, String> labels) {
            Domain in = new Domain(options, domain);
            Map<Label, String> on = Exchanges.on(in, labels);
            waits = in.durations("queue.time", "Time spent in queue before being processed", on);
            pending = in.upDownCounter("queue.pending", "Number of pending elements in queue", on);
        }

        /**
         * One waits.
         *
         * @return since when, of {@link System#nanoTime()}
         */
        public Long waits() {
            pending.increment();
            return System.nanoTime();
        }

        /**
         * One waits no more.
         *
         * @param sinceNs that {@link #waits()} returned
         */
        public void waitsNoMore(Long sinceNs) {
            pending.decrement();
            waits.recordSince(sinceNs);
        }
    }
}
