package dev.parallax.vertx;

import dev.parallax.recorder.AmountRecorder;
import dev.parallax.recorder.Counter;
import dev.parallax.recorder.UpDownCounter;
import java.util.List;
import java.util.Map;

/** Messages of the event bus. Addresses of Vert.x itself, which begin with {@code __vertx.}, are left out. */
public final class EventBus {
    private static final Map<Label, String> NONE = Map.of();

    private final Domain domain;
    private final boolean hasAddress;
    private final Bound<UpDownCounter> handlers;
    private final Bound<UpDownCounter> pending;
    private final Bound<Counter> processed;
    private final Bound<Counter> discarded;
    private final Bound<Counter> published;
    private final Bound<Counter> sent;
    private final Bound<Counter> received;
    private final Bound<Counter> delivered;
    private final Bound<Counter> replyFailures;
    private final Bound<AmountRecorder> bytesRead;
    private final Bound<AmountRecorder> bytesWritten;

    /**
     * Of one application.
     *
     * @param options as of all
     */
    public EventBus(SeriesOptions options) {
        domain = new Domain(options, "eventbus");
        hasAddress = domain.has(Label.ADDRESS);
        List<Label> address = domain.on(Label.ADDRESS);
        List<Label> addressAndSide = domain.on(Label.ADDRESS, Label.SIDE);
        int max = options.rowsMax();
        handlers = new Bound<>(
                max, NONE, address, all -> domain.upDownCounter("handlers", "Number of event bus handlers in use", all));
        pending = new Bound<>(
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

    private Bound<Counter> counters(String what, String help, List<Label> labels) {
        return new Bound<>(domain.rowsMax(), NONE, labels, all -> domain.counter(what, help, all));
    }

    private Bound<AmountRecorder> bytes(String what, String help, List<Label> labels) {
        return new Bound<>(domain.rowsMax(), NONE, labels, all -> domain.amounts(what, help, all));
    }

    /** Where messages of one address go. */
    public final class Handler {
        private final String address;

        private Handler(String address) {
            this.address = address;
        }

        /** It is there no more. */
        public void unregistered() {
            handlers.get(alone(address)).decrement();
        }

        /**
         * It has a message.
         *
         * @param isLocal whether that came from this process
         */
        public void delivered(boolean isLocal) {
            pending.get(sided(address, isLocal)).decrement();
            processed.get(sided(address, isLocal)).increment();
        }

        /**
         * A message was dropped before it had it.
         *
         * @param isLocal whether that came from this process
         */
        public void discarded(boolean isLocal) {
            pending.get(sided(address, isLocal)).decrement();
            discarded.get(sided(address, isLocal)).increment();
        }

        /** Its series are there from the start, as they are in Vert.x 5. */
        public void show() {
            for (boolean isLocal : new boolean[] {true, false}) {
                pending.get(sided(address, isLocal));
                processed.get(sided(address, isLocal));
                discarded.get(sided(address, isLocal));
            }
        }
    }

    private static boolean isInternal(String address) {
        return address.startsWith("__vertx.");
    }

    private String[] alone(String address) {
        return new String[] {address};
    }

    private String[] sided(String address, boolean isLocal) {
        return two(address, isLocal ? "local" : "remote");
    }

    /** In the order of those that are on. */
    private String[] two(String address, String second) {
        return hasAddress ? new String[] {address, second} : new String[] {second};
    }

    /**
     * A handler is there.
     *
     * @param address of it
     * @return to be told what it has; null for one of Vert.x itself
     */
    public Handler registered(String address) {
        if (isInternal(address)) {
            return null;
        }
        handlers.get(alone(address)).increment();
        return new Handler(address);
    }

    /**
     * A message was sent.
     *
     * @param address to which
     * @param isPublished whether it is for all handlers
     * @param isLocal whether one of them is in this process
     */
    public void sent(String address, boolean isPublished, boolean isLocal) {
        if (!isInternal(address)) {
            (isPublished ? published : sent).get(sided(address, isLocal)).increment();
        }
    }

    /**
     * A message has come.
     *
     * @param address to which
     * @param isLocal whether it came from this process
     * @param handlers that are going to have it
     */
    public void received(String address, boolean isLocal, int handlers) {
        if (isInternal(address)) {
            return;
        }
        received.get(sided(address, isLocal)).increment();
        if (handlers > 0) {
            pending.get(sided(address, isLocal)).add(handlers);
            delivered.get(sided(address, isLocal)).increment();
        }
    }

    /**
     * A message went to another process.
     *
     * @param address to which
     * @param bytes how many
     */
    public void written(String address, int bytes) {
        if (!isInternal(address)) {
            bytesWritten.get(alone(address)).record(bytes);
        }
    }

    /**
     * A message came from another process.
     *
     * @param address to which
     * @param bytes how many
     */
    public void read(String address, int bytes) {
        if (!isInternal(address)) {
            bytesRead.get(alone(address)).record(bytes);
        }
    }

    /**
     * A reply did not come.
     *
     * @param address to which was sent what it would have answered
     * @param failure why, one word
     */
    public void replyFailed(String address, String failure) {
        if (!isInternal(address)) {
            replyFailures.get(two(address, failure)).increment();
        }
    }
}
