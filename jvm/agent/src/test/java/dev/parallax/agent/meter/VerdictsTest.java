package dev.parallax.agent.meter;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.parallax.recorder.Recorder;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

class VerdictsTest {
    private static final long LENGTH_NS = 5_000_000;
    private static final int HICCUPS = 20;

    private final List<Hiccup> reported = new ArrayList<>();
    private int calls;

    /** If this fails, hiccups are lost when memory is short, which is what causes many of them. */
    @Test
    void aHiccupForWhichThereIsNoMemoryIsReportedOnceThereIs() {
        Verdicts verdicts = verdicts(hiccup -> {
            if (++calls % 2 == 1) {
                throw new OutOfMemoryError("planted");
            }
            reported.add(hiccup);
        });
        hand(verdicts);
        for (int n = 0; n < HICCUPS; n++) {
            assertThrows(OutOfMemoryError.class, () -> verdicts.judge(true));
        }
        verdicts.judge(true);
        checkReportedOnce(verdicts, HICCUPS);
    }

    /** If this fails, a listener that cannot take one hiccup keeps all that come after it for ever. */
    @Test
    void aHiccupThatCannotBeReportedIsPassedOver() {
        Verdicts verdicts = verdicts(hiccup -> {
            if (++calls == 1) {
                throw new NoClassDefFoundError("planted");
            }
            reported.add(hiccup);
        });
        hand(verdicts);
        assertThrows(NoClassDefFoundError.class, () -> verdicts.judge(true));
        verdicts.judge(true);
        checkReportedOnce(verdicts, HICCUPS - 1);
    }

    private void checkReportedOnce(Verdicts verdicts, int count) {
        assertEquals(count, reported.stream().map(Hiccup::beginNs).distinct().count());
        assertEquals(count, reported.size());
        Map<Cause, Recorder> parts = verdicts.parts(false);
        assertEquals(count, parts.get(Cause.SAFEPOINT).total().count());
    }

    private static void hand(Verdicts verdicts) {
        for (int n = 0; n < HICCUPS; n++) {
            long beginNs = n * 2 * LENGTH_NS;
            verdicts.add(new Raw(false, beginNs, beginNs + LENGTH_NS, 0, 0, LENGTH_NS, 0, 0, 0));
        }
    }

    private static Verdicts verdicts(Consumer<Hiccup> listener) {
        Verdicts.Evidence nothing = new Verdicts.Evidence(new Spans(), new Spans(), new Spans(), new Spans());
        return new Verdicts(0, ContinueSignals.deaf(), nothing, listener);
    }
}
