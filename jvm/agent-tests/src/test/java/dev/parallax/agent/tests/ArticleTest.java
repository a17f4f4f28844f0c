package dev.parallax.agent.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A pool of two, four callers, a server that takes its time, an application that knows nothing of us. If this fails, the
 * wait for the pool is told as the server's time, or the agent alone is not enough.
 *
 * <p>The first call of an application that has just started loads hundreds of classes, so the server takes 400 ms and
 * figures may be 60 ms off for that, or 2 s and 20 ms with {@code -Darticle.ms=2000} on a quiet machine.
 */
class ArticleTest {
    private static final int DELAY_MS = Integer.getInteger("article.ms", 400);
    private static final double WITHIN_MS = DELAY_MS >= 2_000 ? 20 : 60;

    @TempDir
    private Path folder;

    @Test
    void theWaitOfAClassicClientIsToldApart() throws Exception {
        check("classic", 0);
    }

    @Test
    void theWaitOfAnAsynchronousClientIsToldApart() throws Exception {
        check("async", 0);
    }

    /** If this fails, each client that a builder builds after the first counts everything once more. */
    @Test
    void aBuilderThatIsUsedAgainIsMeasuredOnce() throws Exception {
        check("classic", 2);
    }

    private void check(String kind, int builds) throws Exception {
        Path record = folder.resolve("record");
        try (Upstream upstream = new Upstream(DELAY_MS)) {
            AgentJvm.Ended ended = new AgentJvm(folder)
                    .run("out=" + record, HttpApplication.class, kind, upstream.url(), String.valueOf(builds));
            assertEquals(List.of(), ended.out(), "the application's output is its own");
        }
        near(List.of(0, 0, DELAY_MS, DELAY_MS), Logs.ms(record, "http.client.connection.wait_time"));
        near(List.of(DELAY_MS, DELAY_MS, DELAY_MS, DELAY_MS), Logs.ms(record, "http.client.request.duration"));
        near(List.of(DELAY_MS, DELAY_MS, 2 * DELAY_MS, 2 * DELAY_MS), Logs.ms(record, "http.client.call.duration"));
    }

    private static void near(List<Integer> expected, List<Double> seen) {
        assertEquals(expected.size(), seen.size(), seen.toString());
        for (int i = 0; i < seen.size(); i++) {
            assertTrue(Math.abs(expected.get(i) - seen.get(i)) <= WITHIN_MS, seen + " is not " + expected);
        }
    }
}
