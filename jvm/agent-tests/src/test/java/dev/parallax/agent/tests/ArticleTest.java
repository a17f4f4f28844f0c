package dev.parallax.agent.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A pool of two, four callers, a server that takes its time, an application that knows nothing of us. If this fails, the
 * wait for the pool is told as the server's time, or the agent alone is not enough.
 *
 * <p>The application is seconds old and the host has others to run, so the server takes 400 ms and a figure may be 60 ms
 * off in one trial of three; with {@code -Darticle.ms=2000} it is 2 s and 20 ms, for a quiet machine. How often each thing
 * was has to be right in all trials.
 */
class ArticleTest {
    private static final int DELAY_MS = Integer.getInteger("article.ms", 400);
    private static final double WITHIN_MS = DELAY_MS >= 2_000 ? 20 : 60;
    private static final int TRIALS = 3;

    @TempDir
    private Path folder;

    @Test
    void theWaitOfAClassicClientIsToldApart() throws Exception {
        check(HttpApplication.class, AgentJvm.applicationPath(), "classic", "0");
    }

    @Test
    void theWaitOfAnAsynchronousClientIsToldApart() throws Exception {
        check(HttpApplication.class, AgentJvm.applicationPath(), "async", "0");
    }

    /** If this fails, each client that a builder builds after the first counts everything once more. */
    @Test
    void aBuilderThatIsUsedAgainIsMeasuredOnce() throws Exception {
        check(HttpApplication.class, AgentJvm.applicationPath(), "classic", "2");
    }

    /** As an application server has it: the JVM's own class path has nothing of the application. */
    @Test
    void anApplicationInALoaderOfItsOwnIsMeasured() throws Exception {
        check(LoaderApplication.class, tests(), "classic", "0", "apart", AgentJvm.applicationPath());
    }

    /** The library is there twice, and the application asks its own jars before anybody. */
    @Test
    void anApplicationThatLooksAtItsOwnJarsFirstIsMeasured() throws Exception {
        check(LoaderApplication.class, AgentJvm.applicationPath(), "classic", "0", "child-first",
                AgentJvm.applicationPath());
    }

    private static String tests() {
        for (String entry : AgentJvm.applicationPath().split(File.pathSeparator)) {
            if (entry.endsWith("test-classes")) {
                return entry;
            }
        }
        throw new AssertionError("the tests' own classes are on the class path");
    }

    private void check(Class<?> program, String classPath, String kind, String builds, String... more) throws Exception {
        String failure = "";
        for (int trial = 0; trial < TRIALS; trial++) {
            failure = trial(Files.createDirectory(folder.resolve("trial" + trial)), program, classPath, kind, builds, more);
            if (failure.isEmpty()) {
                return;
            }
        }
        throw new AssertionError("in none of " + TRIALS + " trials: " + failure);
    }

    private static String trial(
            Path at, Class<?> program, String classPath, String kind, String builds, String... more) throws Exception {
        Path record = at.resolve("record");
        try (Upstream upstream = new Upstream(DELAY_MS);
                Upstream warm = new Upstream(0)) {
            String[] arguments = new String[4 + more.length];
            System.arraycopy(new String[] {kind, upstream.url(), builds, warm.url()}, 0, arguments, 0, 4);
            System.arraycopy(more, 0, arguments, 4, more.length);
            AgentJvm.Ended ended =
                    new AgentJvm(at).classPath(classPath).run("log=off,out=" + record, program, arguments);
            assertEquals(List.of(), ended.out(), "the application's output is its own");
            assertEquals("", ended.err(), "nothing went wrong");
            String server = "-localhost_" + upstream.port();
            return far(List.of(0, 0, DELAY_MS, DELAY_MS), Logs.ms(record, "http.client.connection.wait_time" + server))
                    + far(List.of(DELAY_MS, DELAY_MS, DELAY_MS, DELAY_MS),
                            Logs.ms(record, "http.client.request.duration" + server))
                    + far(List.of(DELAY_MS, DELAY_MS, 2 * DELAY_MS, 2 * DELAY_MS),
                            Logs.ms(record, "http.client.call.duration" + server));
        }
    }

    private static String far(List<Integer> expected, List<Double> seen) {
        assertEquals(expected.size(), seen.size(), seen.toString());
        boolean isFar = false;
        for (int i = 0; i < seen.size(); i++) {
            isFar |= Math.abs(expected.get(i) - seen.get(i)) > WITHIN_MS;
        }
        return isFar ? seen + " is not " + expected + "; " : "";
    }
}
