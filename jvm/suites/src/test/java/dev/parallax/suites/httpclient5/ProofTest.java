package dev.parallax.suites.httpclient5;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

/** If this fails, the suite passes although nothing is measured. */
@ParameterizedClass
@MethodSource("dev.parallax.suites.httpclient5.Arm$Way#here")
class ProofTest {
    @Parameter
    private Arm.Way way;

    @Test
    void withNothingMeasuredThereIsNothingToCompare() throws Exception {
        try (Server server = new Server(exchange -> exchange.send(200, "ok"));
                Rig rig = new Rig(way, new Settings(), server)) {
            assertEquals("{}", rig.since(server));
            assertEquals("200 ok", rig.get(server.url("/")));
            rig.reported(server, "{calls=1, connects=1, requests=1, waits=1}");
            assertEquals(
                    way.arm() == Arm.PLAIN ? "{}" : "{calls=1, connects=1, requests=1, waits=1}", rig.since(server));
        }
    }
}
