package dev.parallax.vertx;

import dev.parallax.recorder.AmountRecorder;
import dev.parallax.recorder.Counter;
import dev.parallax.recorder.UpDownCounter;
import java.util.List;
import java.util.Map;

/** Measures messages on the event bus. Vert.x' internal addresses, which begin with {@code __vertx.}, are left out. */
public final class EventBus {
    private static final Map<Label, String> NONE = Map.of();

    private final Domain domain;
    private final boolean hasAddress;
    private final SeriesByLabels<UpDownCounter> handlers;
    private final SeriesByLabels<UpDownCounter> pending;
    private final SeriesByLabels<Counter> processed;
    private final SeriesByLabels<Counter> discarded;
    private final SeriesByLabels<Counter> published;
    private final SeriesByLabels<Counter> sent;
    private final SeriesByLabels<Counter> received;
    private final SeriesByLabels<Counter> delivered;
    private final SeriesByLabels<Counter> replyFailures;
    private final SeriesByLabels<AmountRecorder> bytesRead;
    private final SeriesByLabels<AmountRecorder> bytesWritten;

    /**
     * Creates the series of one Vert.x instance.
     *
     * @param options what is measured
     */
    public EventBus(SeriesOptions options) {
        domain = new Domain(options, "eventbus");
        hasAddress = domain.has(Label.ADDRESS);
        List<Label> address = domain.on(Label.ADDRESS);
        List<Label> addressAndSide = domain.on(Label.ADDRESS, Label.SIDE);
        int max = options.rowsMax();
        handlers = new SeriesByLabels<>(
                max, NONE, address, all -> domain.upDownCounter("handlers", "Number of event bus handlers in use", all));
        pending = new SeriesByLabels<>(
                max, NONE, addressAndSide, all -> domain.upDownCounter("pending", "Number of messages not processed yet", all));
        processed = counters("processed", "Number of processed messages", addressAndSide);
        discarded = counters("discarded", "Number of discarded messages", addressAndSide);
        published = counters("published", "Number of messages published (publish / subscribe)", addressAndSide);
        sent = counters("sent", "Number of messages sent (point-to-point)", addressAndSide);
        received = counters("received", "Number of messages received", addressAndSide);
        delivered = counters("delivered", "Number of messages delivered to handlers", addressAndSide);
        replyFailures = counters(
                "reply.failures", "Number of message reply failures", domain.on(Label.ADDRESS, Label.FAILURE));
        bytesRead = bytes("bytes.read", "Number of bytes received while reading messages from event bus cluster peers", address);
        bytesWritten = bytes("bytes.written", "Number of bytes sent while sending messages to event bus cluster peers", address);
    }

    private SeriesByLabels<Counter> counters(String what, String help, List<Label> labels) {
        return new SeriesByLabels<>(domain.rowsMax(), NONE, labels, all -> domain.counter(what, help, all));
    }

    private SeriesByLabels<AmountRecorder> bytes(String what, String help, List<Label> labels) {
        return new SeriesByLabels<>(domain.rowsMax(), NONE, labels, all -> domain.amounts(what, help, all));
    }

    /** A handler of one address. */
    public final class Handler {
        private final String address;

        private Handler(String address) {
            this.address = address;
        }

        /** The handler was removed. */
        public void unregister() {
            handlers.get(single(address)).decrement();
        }

        /**
         * The handler got a message.
         *
         * @param isLocal whether the message came from this process
         */
        public void recordDelivered(boolean isLocal) {
            pending.get(withSide(address, isLocal)).decrement();
            processed.get(withSide(address, isLocal)).increment();
        }

        /**
         * A message was dropped before the handler got it.
         *
         * @param isLocal whether the message came from this process
         */
        public void recordDiscarded(boolean isLocal) {
            pending.get(withSide(address, isLocal)).decrement();
            discarded.get(withSide(address, isLocal)).increment();
        }

        /** Creates the series immediately, as Vert.x 5 does. */
        public void createSeries() {
            for (boolean isLocal : new boolean[] {true, false}) {
                pending.get(withSide(address, isLocal));
                processed.get(withSide(address, isLocal));
                discarded.get(withSide(address, isLocal));
            }
        }
    }

    private static boolean isInternal(String address) {
        return address.startsWith("__vertx.");
    }

    private String[] single(String address) {
        return new String[] {address};
    }

    private String[] withSide(String address, boolean isLocal) {
        return withAddress(address, isLocal ? "local" : "remote");
    }

    /** In the order of the enabled labels. */
    private String[] withAddress(String address, String second) {
        return hasAddress ? new String[] {address, second} : new String[] {second};
    }

    /**
     * A handler was added.
     *
     * @param address of the handler
     * @return its metrics; null for an internal address
     */
    public Handler register(String address) {
        if (isInternal(address)) {
            return null;
        }
        handlers.get(single(address)).increment();
        return new Handler(address);
    }

    /**
     * A message was sent.
     *
     * @param address it was sent to
     * @param isPublished whether it is for all handlers
     * @param isLocal whether one of them is in this process
     */
    public void recordSent(String address, boolean isPublished, boolean isLocal) {
        if (!isInternal(address)) {
            (isPublished ? published : sent).get(withSide(address, isLocal)).increment();
        }
    }

    /**
     * A message was received.
     *
     * @param address it was sent to
     * @param isLocal whether it came from this process
     * @param handlers number of handlers that will get it
     */
    public void recordReceived(String address, boolean isLocal, int handlers) {
        if (isInternal(address)) {
            return;
        }
        received.get(withSide(address, isLocal)).increment();
        if (handlers > 0) {
            pending.get(withSide(address, isLocal)).add(handlers);
            delivered.get(withSide(address, isLocal)).increment();
        }
    }

    /**
     * A message was sent to another process.
     *
     * @param address it was sent to
     * @param bytes its size
     */
    public void recordWritten(String address, int bytes) {
        if (!isInternal(address)) {
            bytesWritten.get(single(address)).record(bytes);
        }
    }

    /**
     * A message was received from another process.
     *
     * @param address it was sent to
     * @param bytes its size
     */
    public void recordRead(String address, int bytes) {
        if (!isInternal(address)) {
            bytesRead.get(single(address)).record(bytes);
        }
    }

    /**
     * A reply failed.
     *
     * @param address the request was sent to
     * @param failure the reason, one word
     */
    public void recordReplyFailure(String address, String failure) {
        if (!isInternal(address)) {
            replyFailures.get(withAddress(address, failure)).increment();
        }
    }
}
