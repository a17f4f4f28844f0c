package dev.parallax.agent.meter;

import dev.parallax.recorder.Recorder;
import java.util.Deque;
import java.util.EnumMap;
import java.util.LinkedList;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.stream.Collectors;

/**
 * Divides hiccups among their causes. The most reliable evidence takes its part first, the others from what is left:
 * SIGCONT, the JVM's safepoint counters, the kernel's account of the thread, normal timer lateness, timestamps around
 * the wait for memory, the idle companion JVM, and the hypervisor's account, which is coarse and covers all CPUs. The
 * rest is unexplained.
 */
final class Verdicts {
    /** A signal or a line of the control process arrives within this time. */
    private static final long AFTER_NS = 100_000_000;

    private static final long KEPT_NS = 30_000_000_000L;

    private static final int HANDED_MAX = 10_000;

    private final long waitNs;
    private final ContinueSignals continues;
    private final Evidence evidence;
    private final Consumer<Hiccup> listener;
    /**
     * Filled by the meters, which must not wait for a lock: a lock held by a thread without a CPU would cause a hiccup.
     */
    private final Queue<Raw> handed = new ConcurrentLinkedQueue<>();
    private final AtomicInteger handedCount = new AtomicInteger();
    /** Linked lists, because an ArrayDeque that cannot grow loses its contents. */
    private final Deque<Raw> pending = new LinkedList<>();

    /** Hiccups of the platform thread, judged or not, which explain those of the virtual one. */
    private final Deque<Raw> recent = new LinkedList<>();
    private final Map<Cause, Recorder> parts = new EnumMap<>(Cause.class);
    private final Map<Cause, Recorder> virtualParts = new EnumMap<>(Cause.class);

    /**
     * Evidence that arrives late.
     *
     * @param pauses of the JVM
     * @param pinned periods in which a virtual thread was pinned to its carrier
     * @param stalls periods in which the meter waited for memory
     * @param control hiccups of the idle companion JVM
     */
    record Evidence(Spans pauses, Spans pinned, Spans stalls, Spans control) {}

    /** @param waitNs until all late evidence has arrived: within two seconds for the flight recorder's events */
    Verdicts(long waitNs, ContinueSignals continues, Evidence evidence, Consumer<Hiccup> listener) {
        this.waitNs = waitNs;
        this.continues = continues;
        this.evidence = evidence;
        this.listener = listener;
        for (Cause cause : Cause.values()) {
            parts.put(cause, new Recorder());
            virtualParts.put(cause, new Recorder());
        }
    }

    Map<Cause, Recorder> parts(boolean isVirtual) {
        return isVirtual ? virtualParts : parts;
    }

    /** Loads and links what a verdict needs, because there may be no memory for that when the first is due. */
    static void warmUp() {
        Evidence nothing = new Evidence(new Spans(), new Spans(), new Spans(), new Spans());
        nothing.pauses.add(0, 1, "");
        Verdicts unused = new Verdicts(0, ContinueSignals.deaf(), nothing, Hiccup::line);
        for (boolean isVirtual : new boolean[] {false, true}) {
            unused.add(new Raw(isVirtual, 0, Meter.LEAST_NS, 0, 1, 1, 1, 1, 1));
        }
        unused.judge(true);
    }

    /** Called by the meters. Takes no lock. */
    void add(Raw raw) {
        if (handedCount.get() < HANDED_MAX) {
            handed.add(raw);
            handedCount.incrementAndGet();
        }
    }

    /**
     * Judges hiccups whose evidence is complete. Throws if memory runs out; the next call retries.
     *
     * @param isLast judges all, with what is known
     */
    synchronized void judge(boolean isLast) {
        take();
        long nowNs = System.nanoTime();
        while (!pending.isEmpty() && (isLast || nowNs - pending.peek().endNs() > waitNs)) {
            judgeFirst();
        }
    }

    private void judgeFirst() {
        Hiccup hiccup;
        try {
            hiccup = judged(pending.peek());
            listener.accept(hiccup);
        } catch (OutOfMemoryError e) {
            throw e;
        } catch (Throwable e) {
            pending.poll();
            throw e;
        }
        // Reported; not to be reported again.
        pending.poll();
        hiccup.parts().forEach((cause, ns) -> parts(hiccup.isVirtual()).get(cause).record(ns));
    }

    private void take() {
        for (Raw raw = handed.peek(); raw != null && pending.size() < HANDED_MAX; raw = handed.peek()) {
            if (!raw.isVirtual() && recent.peekLast() != raw) {
                recent.add(raw);
            }
            pending.add(raw);
            handed.poll();
            handedCount.decrementAndGet();
            while (!recent.isEmpty() && raw.endNs() - recent.peek().endNs() > KEPT_NS) {
                recent.poll();
            }
        }
    }

    private Hiccup judged(Raw raw) {
        Map<Cause, Long> causes = raw.isVirtual() ? ofVirtual(raw) : ofPlatform(raw);
        String detail = evidence.pauses.within(raw.beginNs(), raw.endNs()).stream()
                .map(Spans.Span::text)
                .limit(4)
                .collect(Collectors.joining("; "));
        return new Hiccup(raw.isVirtual(), raw.beginNs(), raw.lengthNs(), causes, detail);
    }

    private Map<Cause, Long> ofPlatform(Raw raw) {
        Division division = new Division(raw.lengthNs());
        // First: a safepoint interrupted by a stop lasts as long, and Linux 6.18 sometimes counts a stop as run-queue
        // time.
        if (continues.heard(raw.beginNs(), raw.endNs() + AFTER_NS)) {
            division.take(Cause.STOPPED, division.leftNs);
        }
        division.take(Cause.SAFEPOINT, safepointNs(raw));
        long ready = Math.min(raw.runQueueNs(), division.leftNs);
        long throttled = Math.min(raw.throttledNs(), ready);
        division.take(Cause.THROTTLED, throttled);
        division.take(Cause.RUN_QUEUE, ready - throttled);
        division.take(Cause.TIMER, raw.timerNs());
        // The meter also allocates where there are no timestamps around.
        long stalledNs = evidence.stalls.coveredNs(raw.beginNs(), raw.endNs());
        division.take(Cause.ALLOCATION, Math.max(raw.allocationNs(), stalledNs));
        division.take(Cause.STOLEN, raw.stolenNs());
        division.take(Cause.HOST, evidence.control.coveredNs(raw.beginNs(), raw.endNs()));
        return division.end(Cause.UNEXPLAINED);
    }

    /**
     * The flight recorder's periods are exact but may be missing or late; the counters are complete but may assign time
     * to the wrong one of two consecutive late wake-ups.
     */
    private long safepointNs(Raw raw) {
        return Math.max(raw.safepointNs(), evidence.pauses.coveredNs(raw.beginNs(), raw.endNs()));
    }

    /** What delayed the platform thread at the same time delayed this one too; the rest is caused by the carriers. */
    private Map<Cause, Long> ofVirtual(Raw raw) {
        Division division = new Division(raw.lengthNs());
        division.take(Cause.SAFEPOINT, safepointNs(raw));
        for (Raw other : recent) {
            long commonNs = raw.overlapNs(other.beginNs(), other.endNs());
            if (commonNs > 0) {
                ofPlatform(other).forEach((cause, ns) -> {
                    if (cause != Cause.SAFEPOINT) {
                        division.take(cause, (long) ((double) ns * commonNs / other.lengthNs()));
                    }
                });
            }
        }
        division.take(Cause.PINNED, evidence.pinned.coveredNs(raw.beginNs(), raw.endNs()));
        return division.end(Cause.CARRIERS);
    }

    /** The parts assigned so far, and the rest. */
    private static final class Division {
        private final Map<Cause, Long> parts = new EnumMap<>(Cause.class);
        private long leftNs;

        Division(long lengthNs) {
            leftNs = lengthNs;
        }

        void take(Cause cause, long ns) {
            long taken = Math.min(ns, leftNs);
            if (taken > 0) {
                parts.merge(cause, taken, Long::sum);
                leftNs -= taken;
            }
        }

        Map<Cause, Long> end(Cause rest) {
            take(rest, leftNs);
            return parts;
        }
    }
}
