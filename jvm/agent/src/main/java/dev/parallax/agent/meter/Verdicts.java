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
 * Divides hiccups among their causes. The surest evidence takes first, and each takes from what is left: SIGCONT, the JVM's own
 * counter of safepoints, the kernel's account of the thread, the timer's usual lateness, the stamps around the wait for memory, the idle JVM,
 * the hypervisor's account, which is coarse and of all CPUs. What nobody takes is unexplained.
 */
final class Verdicts {
    /** So soon a signal is heard after a stop, and a line of the control process. */
    private static final long AFTER_NS = 100_000_000;

    private static final long KEPT_NS = 30_000_000_000L;

    private static final int HANDED_MAX = 10_000;

    private final long waitNs;
    private final Continues continues;
    private final Told told;
    private final Consumer<Hiccup> listener;
    /** By the meters, which must not wait for a lock: one that is held by who has no CPU would be a hiccup of its own. */
    private final Queue<Raw> handed = new ConcurrentLinkedQueue<>();
    private final AtomicInteger handedCount = new AtomicInteger();
    /** Lists, for an ArrayDeque that cannot grow forgets all that it has. */
    private final Deque<Raw> pending = new LinkedList<>();

    /** Of the platform's thread, judged or not: what held up a virtual one. */
    private final Deque<Raw> recent = new LinkedList<>();
    private final Map<Cause, Recorder> parts = new EnumMap<>(Cause.class);
    private final Map<Cause, Recorder> virtualParts = new EnumMap<>(Cause.class);

    /**
     * What comes late.
     *
     * @param pauses of the JVM
     * @param pinned when a virtual thread kept its carrier
     * @param stalls when the meter waited for memory
     * @param control the idle JVM's hiccups
     */
    record Told(Spans pauses, Spans pinned, Spans stalls, Spans control) {}

    /** @param waitNs until all that comes late has come: the flight recorder's events do within two seconds */
    Verdicts(long waitNs, Continues continues, Told told, Consumer<Hiccup> listener) {
        this.waitNs = waitNs;
        this.continues = continues;
        this.told = told;
        this.listener = listener;
        for (Cause cause : Cause.values()) {
            parts.put(cause, new Recorder());
            virtualParts.put(cause, new Recorder());
        }
    }

    Map<Cause, Recorder> parts(boolean isVirtual) {
        return isVirtual ? virtualParts : parts;
    }

    /** Loads and links what a verdict needs, for a first one may be due when there is no memory for that. */
    static void warmUp() {
        Told nothing = new Told(new Spans(), new Spans(), new Spans(), new Spans());
        nothing.pauses.add(0, 1, "");
        Verdicts unused = new Verdicts(0, Continues.deaf(), nothing, Hiccup::line);
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
     * Judges those for which all is known. Where there is no memory for one, that is thrown, and the next call judges it.
     *
     * @param isLast all that there are, with what is known
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
        // From here on it is told, and not again.
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
        String detail = told.pauses.within(raw.beginNs(), raw.endNs()).stream()
                .map(Spans.Span::text)
                .limit(4)
                .collect(Collectors.joining("; "));
        return new Hiccup(raw.isVirtual(), raw.beginNs(), raw.lengthNs(), causes, detail);
    }

    private Map<Cause, Long> ofPlatform(Raw raw) {
        Division division = new Division(raw.lengthNs());
        // First: a safepoint that is stopped half way lasts as long, and Linux 6.18 at times counts a stop as a run queue.
        if (continues.heard(raw.beginNs(), raw.endNs() + AFTER_NS)) {
            division.take(Cause.STOPPED, division.leftNs);
        }
        division.take(Cause.SAFEPOINT, safepointNs(raw));
        long ready = Math.min(raw.runQueueNs(), division.leftNs);
        long throttled = Math.min(raw.throttledNs(), ready);
        division.take(Cause.THROTTLED, throttled);
        division.take(Cause.RUN_QUEUE, ready - throttled);
        division.take(Cause.TIMER, raw.timerNs());
        // It asks for memory elsewhere, too, where there are no stamps around.
        long stalledNs = told.stalls.coveredNs(raw.beginNs(), raw.endNs());
        division.take(Cause.ALLOCATION, Math.max(raw.allocationNs(), stalledNs));
        division.take(Cause.STOLEN, raw.stolenNs());
        division.take(Cause.HOST, told.control.coveredNs(raw.beginNs(), raw.endNs()));
        return division.end(Cause.UNEXPLAINED);
    }

    /**
     * The flight recorder's spans are exact, but it may not be there, or be late; the counters lose nothing, but at two late
     * looks in a row may give one what is the other's.
     */
    private long safepointNs(Raw raw) {
        return Math.max(raw.safepointNs(), told.pauses.coveredNs(raw.beginNs(), raw.endNs()));
    }

    /** What held the platform's thread up at the same time held this one up; the rest is the carriers'. */
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
        division.take(Cause.PINNED, told.pinned.coveredNs(raw.beginNs(), raw.endNs()));
        return division.end(Cause.CARRIERS);
    }

    /** What is given away of a hiccup, and what is left of it. */
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
