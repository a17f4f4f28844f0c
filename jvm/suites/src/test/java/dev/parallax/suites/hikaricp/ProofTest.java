package dev.parallax.suites.hikaricp;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.parallax.suites.AgentEndpoint;
import dev.parallax.suites.Run;
import java.util.List;
import org.junit.jupiter.api.Test;

/** If this fails, the suite passes although nothing is measured. */
class ProofTest {
    @Test
    void aRunWithoutItsAgentFails() {
        if (Run.now() == Run.MODULES) {
            assertThrows(AssertionError.class, AgentEndpoint::find);
        }
        assertTrue(Arm.here().equals(List.of(Arm.AGENT)) == (Run.now() == Run.AGENT));
    }

    /** A borrow that the rig does not know about, and one that it knows about but that did not happen. */
    @Test
    void aFigureThatIsNotTheScenariosFails() throws Exception {
        for (Arm arm : Arm.here()) {
            Rig more = rig(arm);
            more.use();
            more.granted.decrementAndGet();
            check(arm, more);
            Rig fewer = rig(arm);
            fewer.granted.incrementAndGet();
            check(arm, fewer);
        }
    }

    private static Rig rig(Arm arm) {
        Database database = new Database();
        return new Rig(arm, database, Rig.config(database));
    }

    private static void check(Arm arm, Rig rig) {
        if (arm == Arm.PLAIN) {
            rig.close();
        } else {
            assertThrows(AssertionError.class, rig::close);
        }
    }
}
