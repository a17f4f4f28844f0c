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
 * Instants are the recorder's own. Events come in any order between two calls of {@link #takeEnded}. Those of a safepoint
 * come between the same two, for one thread of the JVM writes them. Those of its collection may come earlier, from a thread
 * whose events were handed over a little later, or seconds after it: a collector that works next to the application writes
 * of all its pauses when its collection is over.
 */
final class PauseJoin {
    /**
     * Over 1,600 a second for a minute, more than a JVM stops that gets anything done. When a collection takes longer, or
     * beginnings are reported and no ends, waiting on would fill the memory.
     */
    static final int MOST_PENDING = 100_000;

    /** What collectors that work next to the application stop it for; HotSpot names their operations so. */
    private static final List<String> BESIDE = List.of("Z", "X", "Shenandoah", "G1Concurrent", "G1Pause");

    private final long patienceNs;
    private final TreeMap<Long, Parts> byId = new TreeMap<>();
    private final List<Phase> phases = new ArrayList<>();
    private final List<Latency> latencies = new ArrayList<>();
    private final Map<Integer, Collection> collections = new HashMap<>();
    private long dropped;

    /** A stretch of the recorder's time. */
    record Span(long beginNs, long endNs) {
        boolean holds(final Span other) {
            return beginNs <= other.beginNs && other.endNs <= endNs;
        }
    }

    private record Phase(Span span, int gcId, String name) {
    }

    private record Collection(Span span, String name) {
    }

    private record Latency(Span span, String thread) {
    }

    private static final class Parts {
        private Span begin;
        private Span synchronization;
        private Integer runningThreads;
        private Span end;
        private final List<String> operations = new ArrayList<>(1);

        boolean areWhole() {
            return begin != null && end != null;
        }

        Span whole() {
            return new Span(begin.beginNs, end.endNs);
        }

        boolean areOfConcurrentCollector() {
            return operations.stream().anyMatch(operation -> BESIDE.stream().anyMatch(operation::startsWith));
        }
    }

    /** A pause waits so long for its collection, and those after it wait for it. */
    PauseJoin(final long patienceNs) {
        this.patienceNs = patienceNs;
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

    void collection(final int gcId, final Span span, final String name) {
        collections.put(gcId, new Collection(span, name));
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
     * To be called when every event up to some instant has been reported, which is when the stream flushes.
     */
    List<Pause> takeEnded(final long nowNs) {
        final List<Pause> ended = take(nowNs);
        if (byId.size() > MOST_PENDING) {
            ended.addAll(takeWhole());
        }
        if (byId.size() > MOST_PENDING) {
            dropped += byId.size();
            byId.clear();
        }
        forgetWhatIsPast(nowNs);
        return ended;
    }

    /** The pauses that have ended, in their order, without the collections that were not reported yet. */
    List<Pause> takeWhole() {
        return take(Long.MAX_VALUE);
    }

    private List<Pause> take(final long nowNs) {
        final List<Pause> ended = new ArrayList<>();
        final Long last = lastEnded();
        while (last != null && !byId.isEmpty() && byId.firstKey() <= last) {
            final Parts parts = byId.firstEntry().getValue();
            if (!parts.areWhole()) {
                dropped++;
            } else if (waits(parts, nowNs)) {
                break;
            } else {
                ended.add(assemble(byId.firstKey(), parts));
            }
            byId.pollFirstEntry();
        }
        return ended;
    }

    private boolean waits(final Parts parts, final long nowNs) {
        final Span whole = parts.whole();
        if (nowNs - whole.endNs >= patienceNs) {
            return false;
        }
        return phaseWithin(whole)
            .map(phase -> !collections.containsKey(phase.gcId))
            .orElse(parts.areOfConcurrentCollector());
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
        final Span whole = parts.whole();
        final long stoppedNs = parts.synchronization == null ? parts.begin.endNs : parts.synchronization.endNs;
        return new Pause(
            id,
            whole.beginNs,
            stoppedNs - whole.beginNs,
            whole.endNs - whole.beginNs,
            String.join(" + ", parts.operations),
            phaseWithin(whole).map(this::text),
            Optional.ofNullable(parts.runningThreads),
            lastToStop(new Span(whole.beginNs, stoppedNs)));
    }

    private Optional<Phase> phaseWithin(final Span whole) {
        return phases.stream().filter(phase -> whole.holds(phase.span)).findFirst();
    }

    private String text(final Phase phase) {
        final Collection collection = collections.get(phase.gcId);
        return collection == null ? phase.name : phase.name + ", " + collection.name;
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

    /** A pause that is not reported yet keeps what may belong to it, and so does one whose own events are still to come. */
    private void forgetWhatIsPast(final long nowNs) {
        final long pastNs = Math.min(nowNs - patienceNs, firstBeginNs());
        phases.removeIf(phase -> phase.span.endNs < pastNs);
        latencies.removeIf(latency -> latency.span.endNs < pastNs);
        collections.values().removeIf(collection -> collection.span.endNs < pastNs);
    }

    private long firstBeginNs() {
        return byId.values().stream()
            .filter(parts -> parts.begin != null).mapToLong(parts -> parts.begin.beginNs).findFirst().orElse(Long.MAX_VALUE);
    }

    private Parts parts(final long id) {
        return byId.computeIfAbsent(id, unused -> new Parts());
    }
}
