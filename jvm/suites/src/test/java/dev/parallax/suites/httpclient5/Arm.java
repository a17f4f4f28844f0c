package dev.parallax.suites.httpclient5;

import dev.parallax.suites.AgentEndpoint;
import dev.parallax.suites.Run;
import java.util.ArrayList;
import java.util.List;

/** The ways to measure a client. */
enum Arm {
    /** Not at all: what the others have to be like. */
    PLAIN,
    /** By one call on its builder. */
    BUILDER,
    /** After its builder has finished it. */
    BUILT,
    /** The agent alone. */
    AGENT;

    /** Found before any test listens on a port. */
    static final AgentEndpoint ENDPOINT = Run.now() == Run.AGENT ? AgentEndpoint.find() : null;

    /** Those of this JVM. */
    static List<Arm> here() {
        return ENDPOINT != null ? List.of(AGENT) : List.of(PLAIN, BUILDER, BUILT);
    }

    /** With a classic client and with an asynchronous one. */
    record Way(Arm arm, boolean isAsync) {
        static List<Way> here() {
            List<Way> ways = new ArrayList<>();
            for (Arm arm : Arm.here()) {
                ways.add(new Way(arm, false));
                ways.add(new Way(arm, true));
            }
            return ways;
        }
    }
}
