package dev.parallax.pauses;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.parallax.pauses.PauseJoin.Span;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** Events of safepoints to pauses, without a recorder. */
final class PauseJoinTest {
    private static final long PATIENCE = 10_000;
    private final PauseJoin join = new PauseJoin(PATIENCE);

    @Test
    void the_events_of_one_safepoint_make_one_pause() {
        join.begin(7, new Span(100, 140));
        join.synchronization(7, new Span(110, 130), 3);
        join.operation(7, "G1CollectForAllocation");
        join.phase(5, new Span(140, 180), "GC Pause");
        join.collection(5, new Span(90, 185), "G1New: G1 Evacuation Pause");
        join.latency(new Span(100, 120), "quick");
        join.latency(new Span(100, 129), "slow");
        join.end(7, new Span(190, 200));
        assertEquals(List.of(new Pause(7, 100, 30, 100, "G1CollectForAllocation",
            Optional.of("GC Pause, G1New: G1 Evacuation Pause"), Optional.of(3), Optional.of("slow"))), join.takeEnded(1_000));
        assertEquals(List.of(), join.takeEnded(1_000));
    }

    @Test
    void a_pause_that_has_not_ended_waits_for_its_end() {
        join.begin(7, new Span(100, 140));
        join.phase(5, new Span(140, 180), "Pause Mark Start");
        join.collection(5, new Span(90, 185), "Z: Proactive");
        assertEquals(List.of(), join.takeEnded(50_000));
        join.end(7, new Span(190, 200));
        final Pause pause = join.takeEnded(1_000).get(0);
        assertEquals(100, pause.totalNs());
        assertEquals(40, pause.syncNs());
        assertEquals(Optional.of("Pause Mark Start, Z: Proactive"), pause.collection());
    }

    /** If this fails, a pause that began before the stream is reported with a length that it did not have. */
    @Test
    void a_safepoint_told_in_part_is_counted_and_left_out() {
        join.end(6, new Span(50, 60));
        join.begin(7, new Span(100, 140));
        join.end(7, new Span(190, 200));
        assertEquals(List.of(7L), join.takeEnded(1_000).stream().map(Pause::safepointId).toList());
        assertEquals(1, join.dropped());
    }

    @Test
    void a_phase_of_another_time_is_not_its_cause() {
        join.phase(5, new Span(10, 20), "GC Pause");
        join.begin(7, new Span(100, 140));
        join.operation(7, "ThreadDump");
        join.end(7, new Span(190, 200));
        assertEquals(Optional.empty(), join.takeEnded(1_000).get(0).collection());
    }

    /** As generational ZGC reports: a major collection, a minor one within, and hand-overs between all that belongs together. */
    @Test
    void pauses_wait_for_a_collection_that_is_told_when_it_is_over() {
        safepoint(7, 100, "ZMarkStartYoungAndOld");
        assertEquals(List.of(), join.takeEnded(300));
        safepoint(8, 400, "ZMarkStartYoung");
        safepoint(9, 600, "ThreadDump");
        join.phase(6, inner(400), "Pause Mark Start");
        join.collection(6, new Span(390, 700), "ZGC Minor: Allocation Rate");
        assertEquals(List.of(), join.takeEnded(1_000), "the first is of the major collection, and comes first");
        safepoint(10, 2_000, "ZRelocateStartOld");
        assertEquals(List.of(), join.takeEnded(3_000));
        join.phase(5, inner(100), "Pause Mark Start (Major)");
        join.phase(5, inner(2_000), "Pause Relocate Start");
        assertEquals(List.of(), join.takeEnded(4_000), "phases come before their collection");
        join.collection(5, new Span(90, 3_900), "ZGC Major: Warmup");
        assertEquals(
            List.of(
                "7 Pause Mark Start (Major), ZGC Major: Warmup", "8 Pause Mark Start, ZGC Minor: Allocation Rate", "9 -",
                "10 Pause Relocate Start, ZGC Major: Warmup"),
            reported(5_000));
    }

    /** If this fails, events are lost that one thread of the JVM handed over a moment before another. */
    @Test
    void a_collection_may_be_told_before_its_pauses() {
        join.phase(5, inner(100), "Pause Mark End");
        join.collection(5, new Span(90, 300), "ZGC Minor: Warmup");
        assertEquals(List.of(), join.takeEnded(400));
        safepoint(7, 100, "ZMarkEndYoung");
        assertEquals(List.of("7 Pause Mark End, ZGC Minor: Warmup"), reported(1_400));
    }

    @Test
    void a_pause_whose_collection_was_lost_is_told_when_patience_ends() {
        safepoint(7, 100, "ShenandoahInitMark");
        safepoint(8, 300, "G1PauseRemark");
        join.phase(5, inner(300), "Pause Remark");
        assertEquals(List.of(), reported(200 + PATIENCE - 1));
        assertEquals(List.of("7 -"), reported(200 + PATIENCE));
        assertEquals(List.of("8 Pause Remark"), reported(400 + PATIENCE));
    }

    @Test
    void what_collectors_that_stop_the_application_tell_is_not_waited_for() {
        safepoint(7, 100, "ThreadDump");
        safepoint(8, 300, "G1CollectForAllocation");
        assertEquals(List.of("7 -", "8 -"), reported(500));
    }

    /** If this fails, closing a stream loses a minute of pauses. */
    @Test
    void when_nothing_more_comes_whole_pauses_are_told_without_the_collections_that_did_not() {
        safepoint(7, 100, "ZMarkStartYoung");
        safepoint(8, 300, "ThreadDump");
        join.begin(9, new Span(500, 520));
        assertEquals(List.of(), reported(1_000));
        assertEquals(List.of("7 -", "8 -"), texts(join.takeWhole()));
        assertEquals(0, join.dropped(), "the last has not ended, which is no fault of the recorder");
    }

    /** If this fails, an application that stops often has its pauses counted and not reported. */
    @Test
    void when_too_many_wait_whole_pauses_are_told_and_others_wait_for_their_ends() {
        safepoint(0, 100, "ZMarkStartYoung");
        join.begin(1, new Span(250, 260));
        for (int id = 2; id < PauseJoin.MOST_PENDING; id++) {
            safepoint(id, 300 + id, "ThreadDump");
        }
        final int open = PauseJoin.MOST_PENDING;
        assertEquals(List.of(), reported(1_000));
        join.begin(open, new Span(200_000, 200_020));
        assertEquals(PauseJoin.MOST_PENDING - 1, join.takeEnded(1_000).size());
        assertEquals(1, join.dropped(), "the one whose end was not told");
        join.end(open, new Span(200_090, 200_100));
        assertEquals(List.of(open + " -"), reported(200_200));
    }

    @Test
    void when_too_many_are_told_in_part_only_they_are_counted_and_forgotten() {
        for (int id = 0; id <= PauseJoin.MOST_PENDING; id++) {
            join.begin(id, new Span(100 + id, 120 + id));
        }
        assertEquals(List.of(), reported(1_000));
        assertEquals(PauseJoin.MOST_PENDING + 1, join.dropped());
        safepoint(PauseJoin.MOST_PENDING + 1, 300_000, "ThreadDump");
        assertEquals(1, reported(300_500).size());
        assertEquals(PauseJoin.MOST_PENDING + 1, join.dropped());
    }

    private void safepoint(final long id, final long beginNs, final String operation) {
        join.begin(id, new Span(beginNs, beginNs + 20));
        join.operation(id, operation);
        join.end(id, new Span(beginNs + 90, beginNs + 100));
    }

    private static Span inner(final long beginNs) {
        return new Span(beginNs + 30, beginNs + 80);
    }

    private List<String> reported(final long nowNs) {
        return texts(join.takeEnded(nowNs));
    }

    private static List<String> texts(final List<Pause> pauses) {
        return pauses.stream()
            .map(pause -> pause.safepointId() + " " + pause.collection().orElse("-")).toList();
    }
}
