package dev.parallax.pauses;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.parallax.pauses.PauseJoin.Span;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** Events of safepoints to pauses, without a recorder. */
final class PauseJoinTest {
    private final PauseJoin join = new PauseJoin();

    @Test
    void the_events_of_one_safepoint_make_one_pause() {
        join.begin(7, new Span(100, 140));
        join.synchronization(7, new Span(110, 130), 3);
        join.operation(7, "G1CollectForAllocation");
        join.phase(5, new Span(140, 180), "GC Pause");
        join.collection(5, "G1New: G1 Evacuation Pause");
        join.latency(new Span(100, 120), "quick");
        join.latency(new Span(100, 129), "slow");
        join.end(7, new Span(190, 200));
        assertEquals(List.of(new Pause(7, 100, 30, 100, "G1CollectForAllocation",
            Optional.of("GC Pause, G1New: G1 Evacuation Pause"), Optional.of(3), Optional.of("slow"))), join.takeEnded());
        assertEquals(List.of(), join.takeEnded());
    }

    @Test
    void a_pause_that_has_not_ended_waits_for_its_end() {
        join.begin(7, new Span(100, 140));
        join.phase(5, new Span(140, 180), "Pause Mark Start");
        assertEquals(List.of(), join.takeEnded());
        join.end(7, new Span(190, 200));
        final Pause pause = join.takeEnded().get(0);
        assertEquals(100, pause.totalNs());
        assertEquals(40, pause.syncNs());
        assertEquals(Optional.of("Pause Mark Start"), pause.collection());
    }

    /** If this fails, a pause that began before the stream is told with a length that it did not have. */
    @Test
    void a_safepoint_told_in_part_is_counted_and_left_out() {
        join.end(6, new Span(50, 60));
        join.begin(7, new Span(100, 140));
        join.end(7, new Span(190, 200));
        assertEquals(List.of(7L), join.takeEnded().stream().map(Pause::safepointId).toList());
        assertEquals(1, join.dropped());
    }

    @Test
    void a_phase_of_another_time_is_not_its_cause() {
        join.phase(5, new Span(10, 20), "GC Pause");
        join.begin(7, new Span(100, 140));
        join.operation(7, "ThreadDump");
        join.end(7, new Span(190, 200));
        assertEquals(Optional.empty(), join.takeEnded().get(0).collection());
    }
}
