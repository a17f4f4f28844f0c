package dev.parallax.pauses;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/**
 * Puts the flight recorder's events of one safepoint together. Reads no clock; one thread drives it.
 * <p>
 * Instants are the recorder's own. Events come in any order between two calls of {@link #takeEnded}.
 */
final class PauseJoin {
    /** Far more than a second can hold; a stream that tells beginnings and no ends would fill the memory. */
    private static final int MOST_PENDING = 100_000;

    private final TreeMap<Long, Parts> byId = new TreeMap<>();
    private final List<Phase> phases = new ArrayList<>();
    private final List<Latency> latencies = new ArrayList<>();
    private final Map<Integer, String> collections = new HashMap<>();
    private long dropped;

    /** A stretch of the recorder's time. */
    record Span(long beginNs, long endNs) {
        boolean holds(final Span other) {
            return beginNs <= other.beginNs && other.endNs <= endNs;
        }
    }

    private record Phase(Span span, int gcId, String name) {
    }

    private record Latency(Span span, String thread) {
    }

    private static final class Parts {
        private Span begin;
        private Span synchronization;
        private Integer runningThreads;
        private Span end;
        private final List<String> operations = new ArrayList<>(1);
    }

    void begin(final long id, final Span span) {
        parts(id).begin = span;
    }

    void synchronization(final long id, final Span span, final int runningThreads) {
        final Parts parts = parts(id);
        parts.synchronization = span;
        parts.runningThreads = runningThreads;
    }

    void operation(final long id, final String name) {
        parts(id).operations.add(name);
    }

    void end(final long id, final Span span) {
        parts(id).end = span;
    }

    void phase(final int gcId, final Span span, final String name) {
        phases.add(new Phase(span, gcId, name));
    }

    void collection(final int gcId, final String name) {
        collections.put(gcId, name);
    }

    void latency(final Span span, final String thread) {
        latencies.add(new Latency(span, thread));
    }

    /** Safepoints that were not put together: one of their events was missing. */
    long dropped() {
        return dropped;
    }

    /**
     * The pauses that have ended, in their order, with {@code beginNs} on the recorder's clock.
     * To be called when every event up to some instant has been told, which is when the stream flushes.
     */
    List<Pause> takeEnded() {
        final List<Pause> ended = new ArrayList<>();
        final Long last = lastEnded();
        if (last != null) {
            for (final Map.Entry<Long, Parts> one : byId.headMap(last, true).entrySet()) {
                final Parts parts = one.getValue();
                if (parts.begin == null || parts.end == null) {
                    dropped++;
                } else {
                    ended.add(assemble(one.getKey(), parts));
                }
            }
            byId.headMap(last, true).clear();
        }
        forgetWhatIsPast();
        return ended;
    }

    private Long lastEnded() {
        for (final Map.Entry<Long, Parts> one : byId.descendingMap().entrySet()) {
            if (one.getValue().end != null) {
                return one.getKey();
            }
        }
        return null;
    }

    private Pause assemble(final long id, final Parts parts) {
        final Span whole = new Span(parts.begin.beginNs, parts.end.endNs);
        final long stoppedNs = parts.synchronization == null ? parts.begin.endNs : parts.synchronization.endNs;
        return new Pause(
            id,
            whole.beginNs,
            stoppedNs - whole.beginNs,
            whole.endNs - whole.beginNs,
            String.join(" + ", parts.operations),
            collectionWithin(whole),
            Optional.ofNullable(parts.runningThreads),
            lastToStop(new Span(whole.beginNs, stoppedNs)));
    }

    private Optional<String> collectionWithin(final Span whole) {
        for (final Phase phase : phases) {
            if (whole.holds(phase.span)) {
                final String collection = collections.get(phase.gcId);
                return Optional.of(collection == null ? phase.name : phase.name + ", " + collection);
            }
        }
        return Optional.empty();
    }

    /** A thread's own time to stop begins when it was sampled and ends when it goes on, so it overlaps the way there. */
    private Optional<String> lastToStop(final Span wayThere) {
        Latency last = null;
        for (final Latency one : latencies) {
            final boolean overlaps = one.span.beginNs <= wayThere.endNs && wayThere.beginNs <= one.span.endNs;
            if (overlaps && (last == null || one.span.endNs > last.span.endNs)) {
                last = one;
            }
        }
        return last == null ? Optional.empty() : Optional.of(last.thread);
    }

    /** A pause still under way keeps what may belong to it. */
    private void forgetWhatIsPast() {
        if (byId.size() > MOST_PENDING) {
            dropped += byId.size();
            byId.clear();
        }
        if (byId.isEmpty()) {
            phases.clear();
            latencies.clear();
            collections.clear();
        }
    }

    private Parts parts(final long id) {
        return byId.computeIfAbsent(id, unused -> new Parts());
    }
}
