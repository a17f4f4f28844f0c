package dev.parallax.vertx;

import dev.parallax.recorder.AmountRecorder;
import dev.parallax.recorder.Counter;
import java.util.Map;

/** Datagrams of one socket. */
public final class Datagrams {
    private final Domain domain;
    private final AmountRecorder written;
    private final Bound<Counter> errors;

    /** Null before it listens. */
    private volatile AmountRecorder read;

    /**
     * Of a socket that does not listen yet.
     *
     * @param options as of all
     */
    public Datagrams(SeriesOptions options) {
        domain = new Domain(options, "datagram");
        written = domain.amounts("bytes.written", "Total number of datagram bytes sent", Map.of());
        errors = new Bound<>(
                options.rowsMax(),
                Map.of(),
                domain.on(Label.CLASS_NAME),
                all -> domain.counter("errors", "Total number of datagram errors", all));
    }

    /**
     * It listens.
     *
     * @param local own address
     */
    public void listens(String local) {
        Map<Label, String> labels = Exchanges.on(domain, Map.of(Label.LOCAL, local));
        read = domain.amounts("bytes.read", "Total number of datagram bytes received", labels);
    }

    /**
     * One came.
     *
     * @param bytes of it
     */
    public void read(long bytes) {
        AmountRecorder to = read;
        if (to != null) {
            to.record(bytes);
        }
    }

    /**
     * One went.
     *
     * @param bytes of it
     */
    public void written(long bytes) {
        written.record(bytes);
    }

    /**
     * It failed.
     *
     * @param thrown how
     */
    public void failed(Throwable thrown) {
        errors.get(new String[] {thrown.getClass().getSimpleName()}).increment();
    }
}
