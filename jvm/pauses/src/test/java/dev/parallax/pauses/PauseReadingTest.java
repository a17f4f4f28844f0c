package dev.parallax.pauses;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** Differences of readings, in the order in which the JVM moves its counters. */
final class PauseReadingTest {
    private static final PauseReading BEFORE = new PauseReading(5, 50, 500);
    private static final PauseReading BEGUN = new PauseReading(6, 50, 500);
    private static final PauseReading STOPPED = new PauseReading(6, 60, 500);
    private static final PauseReading OVER = new PauseReading(6, 60, 600);

    @Test
    void a_pause_is_unfinished_until_it_is_booked() {
        assertFalse(BEFORE.since(BEFORE).unfinished());
        assertTrue(BEGUN.since(BEFORE).unfinished());
        assertTrue(STOPPED.since(BEFORE).unfinished());
        assertFalse(OVER.since(BEFORE).unfinished());
    }

    /** If this fails, an interval that ends within a pause loses what is counted later, or has it twice. */
    @Test
    void readings_in_the_middle_add_up_to_the_pause() {
        final long inSteps = BEGUN.since(BEFORE).pausedNs() + STOPPED.since(BEGUN).pausedNs() + OVER.since(STOPPED).pausedNs();
        assertEquals(110, inSteps);
        assertEquals(110, OVER.since(BEFORE).pausedNs());
        assertEquals(PauseReading.NONE, OVER.since(OVER));
    }

    @Test
    void an_operation_was_not_paused_for_longer_than_it_took() {
        assertEquals(110, OVER.since(BEFORE).pausedWithin(200));
        assertEquals(80, OVER.since(BEFORE).pausedWithin(80));
    }
}
