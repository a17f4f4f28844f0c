package dev.parallax.recorder;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;

import java.util.List;
import org.junit.jupiter.api.Test;

class LabelledRecorderTest {
    @Test
    void eachCombinationHasARowOfItsOwnUpToTheLimitAndTheRestIsOther() {
        LabelledRecorder labelled = new LabelledRecorder(100, "method", "status");
        for (int round = 0; round < 2; round++) {
            for (int i = 0; i < 200; i++) {
                labelled.row("m" + i % 2, new String("" + i)).record(i);
            }
        }
        assertEquals(100, labelled.rows().size());
        for (int i = 0; i < 100; i++) {
            LabelledRecorder.Row row = labelled.rows().get(i);
            assertEquals(List.of("m" + i % 2, "" + i), row.values());
            assertEquals(2, row.recorder().total().count());
            assertEquals(2L * i, row.recorder().total().sumNs());
        }
        assertEquals(200, labelled.other().total().count());
    }

    /** "Aa" and "BB" have the same hash. */
    @Test
    void aRowIsNeverMistakenForAnothers() {
        LabelledRecorder labelled = new LabelledRecorder(10, "a");
        assertNotSame(labelled.row("Aa"), labelled.row("BB"));
        assertSame(labelled.row(null), labelled.row(""));
        assertEquals(List.of("a"), labelled.names());
    }

    @Test
    void whatWasBoundAtTheStartIsTheRowThatIsFoundAfterwards() {
        LabelledRecorder labelled = new LabelledRecorder(1, "a", "b", "c");
        Recorder bound = labelled.row("x", "y", "z");
        assertSame(bound, labelled.row("x", "y", "z"));
        assertSame(labelled.other(), labelled.row("x", "y", "w"));
    }

    @Test
    void waitAndServiceSumToTheResponse() {
        Timing timing = new Timing();
        timing.record(100, 350, 1_000);
        timing.recordAbandoned(100, 5_100);
        assertEquals(250, timing.waited().total().sumNs());
        assertEquals(650, timing.service().total().sumNs());
        assertEquals(900, timing.response().total().sumNs());
        assertEquals(5_000, timing.abandoned().total().sumNs());
    }
}
