package dev.parallax.agent.meter;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/** Recent periods of one kind. Thread-safe. */
final class Spans {
    private static final int MOST = 20_000;

    /** Far above the longest wait for a verdict plus the longest hiccup. */
    private static final long KEPT_NS = 120_000_000_000L;

    private final Deque<Span> spans = new ArrayDeque<>();

    /** @param text for people; may be empty */
    record Span(long beginNs, long endNs, String text) {}

    synchronized void add(long beginNs, long endNs, String text) {
        spans.add(new Span(beginNs, endNs, text));
        while (spans.size() > MOST || endNs - spans.peek().endNs > KEPT_NS) {
            spans.poll();
        }
    }

    /** Returns the periods that overlap this one, by start. */
    synchronized List<Span> within(long beginNs, long endNs) {
        List<Span> found = new ArrayList<>();
        for (Span span : spans) {
            if (span.beginNs - endNs < 0 && span.endNs - beginNs > 0) {
                found.add(span);
            }
        }
        found.sort((a, b) -> Long.compare(a.beginNs - b.beginNs, 0));
        return found;
    }

    /** Returns how much of this period is covered by at least one. */
    long coveredNs(long beginNs, long endNs) {
        long covered = 0;
        long from = beginNs;
        for (Span span : within(beginNs, endNs)) {
            long begin = span.beginNs - from > 0 ? span.beginNs : from;
            long end = span.endNs - endNs < 0 ? span.endNs : endNs;
            if (end - begin > 0) {
                covered += end - begin;
                from = end;
            }
        }
        return covered;
    }
}
