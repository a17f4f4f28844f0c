package dev.parallax.vertx;

import dev.parallax.recorder.AmountRecorder;
import dev.parallax.recorder.Counter;
import java.util.Map;

/** Measures the datagrams of one socket. */
public final class Datagrams {
    private final Domain domain;
    private final AmountRecorder written;
    private final SeriesByLabels<Counter> errors;

    /** Null until the socket listens. */
    private volatile AmountRecorder read;

    /**
     * Creates the series of a socket that is not listening yet.
     *
     * @param options what is measured
     */
    public Datagrams(SeriesOptions options) {
        domain = new Domain(options, "datagram");
        written = domain.amounts("bytes.written", "Total number of datagram bytes sent", Map.of());
        errors = new SeriesByLabels<>(
                options.rowsMax(),
                Map.of(),
                domain.on(Label.CLASS_NAME),
                all -> domain.counter("errors", "Total number of datagram errors", all));
    }

    /**
     * The socket listens.
     *
     * @param local own address
     */
    public void startListening(String local) {
        Map<Label, String> labels = Exchanges.on(domain, Map.of(Label.LOCAL, local));
        read = domain.amounts("bytes.read", "Total number of datagram bytes received", labels);
    }

    /**
     * A datagram was received.
     *
     * @param bytes its size
     */
    public void recordRead(long bytes) {
        AmountRecorder to = read;
        if (to != null) {
            to.record(bytes);
        }
    }

    /**
     * A datagram was sent.
     *
     * @param bytes its size
     */
    public void recordWritten(long bytes) {
        written.record(bytes);
    }

    /**
     * An error occurred.
     *
     * @param thrown its class becomes a label
     */
    public void recordError(Throwable thrown) {
        errors.get(new String[] {thrown.getClass().getSimpleName()}).increment();
    }
}
