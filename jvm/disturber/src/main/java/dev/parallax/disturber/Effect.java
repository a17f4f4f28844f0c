package dev.parallax.disturber;

import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingStream;

/** Counts what the collector does, from the flight recorder. Without a flight recorder, nothing is known. */
public final class Effect {
    /** The recorder delivers a second's events at its end. */
    private static final long LATE_MS = 1_500;

    private final Mode mode;
    private final Map<String, Long> all = new TreeMap<>();
    private long chosen;
    private RecordingStream stream;

    /**
     * What was counted.
     *
     * @param isKnown whether there was a flight recorder
     * @param chosen how often the effect that the mode is for happened
     * @param all number of collections of each kind, by name and cause
     */
    public record Count(boolean isKnown, long chosen, Map<String, Long> all) {
        /** Nothing is known. */
        public static final Count NONE = new Count(false, 0, Map.of());

        String text() {
            return !isKnown
                    ? "not known, for there is no flight recorder"
                    : chosen + " of what it is for; all: " + (all.isEmpty() ? "nothing" : all.entrySet().stream()
                            .map(one -> one.getValue() + " " + one.getKey())
                            .collect(Collectors.joining(", ")));
        }
    }

    private Effect(Mode mode) {
        this.mode = mode;
    }

    /**
     * Starts to count.
     *
     * @param mode whose effect is counted
     * @return to be ended
     */
    public static Effect watch(Mode mode) {
        Effect effect = new Effect(mode);
        try {
            effect.stream = new RecordingStream();
            effect.on("jdk.GarbageCollection", event -> effect.collection(
                    event.getString("name"), event.getString("cause")));
            effect.on("jdk.G1GarbageCollection", event -> effect.g1(event.getString("type")));
            effect.on("jdk.ZAllocationStall", event -> effect.count("ZAllocationStall", mode == Mode.ALLOCATION_STALL));
            effect.on("jdk.SafepointStateSynchronization", event -> effect.safepoint(event.getDuration()));
            effect.on("jdk.ClassUnload", event -> effect.count("ClassUnload", mode == Mode.METASPACE));
            effect.start();
        } catch (RuntimeException | LinkageError absent) {
            effect.close();
            effect.stream = null;
        }
        return effect;
    }

    /** Not {@code startAsync}, whose thread is not a daemon. */
    private void start() {
        RecordingStream started = stream;
        Thread thread = new Thread(
                () -> {
                    try {
                        started.start();
                    } catch (RuntimeException closed) {
                        // Then nothing more is counted.
                    }
                },
                "parallax-disturber-effect");
        thread.setDaemon(true);
        thread.start();
    }

    private void on(String name, Consumer<RecordedEvent> take) {
        stream.enable(name).withThreshold(Duration.ZERO).withoutStackTrace();
        stream.onEvent(name, take);
    }

    private void collection(String name, String cause) {
        boolean isOld = name.endsWith("Old") || name.equals("Z") || name.equals("ZGC Major") || name.startsWith("Shenandoah");
        boolean isChosen =
                switch (mode) {
                    case FRAGMENTATION, THREAD_STACKS -> isOld;
                    case HUMONGOUS -> isOld || cause.equals("G1 Humongous Allocation");
                    // For concurrent collectors: only collections that could not wait any longer. For others: all.
                    case ALLOCATION_STALL -> !name.startsWith("Z")
                            && (!name.startsWith("Shenandoah") || cause.equals("Allocation Failure"));
                    case METASPACE, TIME_TO_SAFEPOINT -> false;
                };
        count(name + " (" + cause + ")", isChosen);
    }

    private void g1(String type) {
        if (type.equals("Mixed")) {
            count("G1 mixed", mode == Mode.FRAGMENTATION || mode == Mode.THREAD_STACKS);
        }
    }

    /** A time to safepoint of more than a millisecond. */
    private void safepoint(Duration took) {
        if (took.toNanos() > 1_000_000) {
            count("slow to stop", mode == Mode.TIME_TO_SAFEPOINT);
        }
    }

    private synchronized void count(String what, boolean isChosen) {
        all.merge(what, 1L, Long::sum);
        chosen += isChosen ? 1 : 0;
    }

    /**
     * Stops counting, after the last events have arrived.
     *
     * @return what was counted
     */
    public Count end() {
        if (stream == null) {
            return Count.NONE;
        }
        try {
            Thread.sleep(LATE_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        close();
        synchronized (this) {
            return new Count(true, chosen, Map.copyOf(all));
        }
    }

    /** Stops counting. Repeating it has no effect. */
    public void close() {
        if (stream != null) {
            stream.close();
        }
    }
}
