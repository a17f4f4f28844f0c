package dev.parallax.pauses;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/**
 * Joins the flight recorder's events of one safepoint. Reads no clock; used by one thread.
 * <p>
 * Instants are the recorder's own. Events arrive in any order between two calls of {@link #takeEnded}. Those of a
 * safepoint arrive between the same two, because one thread of the JVM writes them. Those of its collection may arrive
 * earlier, from a thread whose events were delivered a little later, or seconds after it: a concurrent collector writes
 * the events of all its pauses when its collection is over.
 */
final class PauseJoin {
    /**
     * Over 1,600 per second for a minute, more than a JVM that does any work. If a collection takes longer, or
     * beginnings are reported without ends, waiting longer would fill the memory.
     */
    static final int MOST_PENDING = 100_000;

    /** The operations for which concurrent collectors stop the application, as HotSpot names them. */
    private static final List<String> BESIDE = List.of("Z", "X", "Shenandoah", "G1Concurrent", "G1Pause");

    private final long patienceNs;
    private final TreeMap<Long, Parts> byId = new TreeMap<>();
    private final List<Phase> phases = new ArrayList<>();
    private final List<Latency> latencies = new ArrayList<>();
    private final Map<Integer, Collection> collections = new HashMap<>();
    private long dropped;

    /** A period on the recorder's clock. */
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

    /** How long a pause waits for its collection; those after it wait, too. */
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

    /** Safepoints that could not be joined: one of their events was missing. */
    long dropped() {
        return dropped;
    }

    /**
     * The pauses that have ended, in order, with {@code beginNs} on the recorder's clock. Call this when every event up
     * to some instant has been reported, which is when the stream flushes.
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

    /** The pauses that have ended, in order, without the collections that were not reported yet. */
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

    /**
     * A thread's own time to stop begins when it was sampled and ends when it continues, so it overlaps the time to
     * safepoint.
     */
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

    /**
     * A pause that is not reported yet keeps what may belong to it, and so does one whose own events have not
     * arrived yet.
     */
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
