package dev.parallax.pauses;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Test;

/** Lengths from readings that are written down. */
final class PauseTallyTest {

    /** Shows what it is set to. */
    private static final class SetClock implements PauseClock {
        private PauseReading reading = new PauseReading(5, 50, 500);

        @Override
        public PauseReading read() {
            return reading;
        }

        @Override
        public Way way() {
            return Way.COUNTERS_FILE;
        }

        @Override
        public List<String> notUsed() {
            return List.of();
        }

        @Override
        public void close() {
        }
    }

    private final SetClock clock = new SetClock();
    private final PauseTally tally = new PauseTally(clock);

    private void poll(final long begun, final long syncNs, final long heldNs) {
        clock.reading = new PauseReading(begun, syncNs, heldNs);
        tally.poll();
    }

    @Test
    void what_was_before_is_not_told() {
        assertArrayEquals(new long[0], tally.take());
    }

    @Test
    void polls_between_pauses_tell_each() {
        poll(6, 60, 600);
        poll(6, 60, 600);
        poll(7, 61, 602);
        assertArrayEquals(new long[] {110, 3}, tally.take());
        assertArrayEquals(new long[0], tally.take());
    }

    /** If this fails, a pause during which another thread polled is reported as two shorter ones. */
    @Test
    void a_pause_in_the_middle_is_told_when_it_is_over() {
        poll(6, 50, 500);
        poll(6, 60, 500);
        assertArrayEquals(new long[0], tally.take());
        poll(6, 60, 600);
        assertArrayEquals(new long[] {110}, tally.take());
    }

    @Test
    void pauses_between_two_polls_keep_their_sum() {
        poll(8, 50, 600);
        assertArrayEquals(new long[] {33, 33, 34}, tally.take());
        assertEquals(2, tally.merged());
    }
}
