package dev.parallax.agent.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.function.ToLongFunction;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInfo;
import org.junit.jupiter.api.io.TempDir;

/**
 * A pool of two connections, four callers, a slow server, and an application without any code for the agent. If this
 * fails, the wait for the pool is reported as the server's time, or the agent alone is not enough.
 *
 * <p>The timestamps of the callers and of the server enclose what is reported, whatever the host does: these bounds
 * hold in all trials. That two wait and two do not, and that no wait is in the service time, is the case under test,
 * which a host that stops a caller or the server may spoil: it must be reported in one trial of three. With {@code
 * -Darticle.ms=2000}, for a quiet machine, the server takes 2 s, and all figures must be within 20 ms of the case's,
 * plus the error of two digits.
 */
@Tag("alone")
class ArticleTest {
    private static final int DELAY_MS = Integer.getInteger("article.ms", 400);
    private static final boolean IS_LONG = DELAY_MS >= 2_000;
    private static final double WITHIN_MS = 20;
    private static final int TRIALS = 3;

    @TempDir
    private Path folder;

    private TestInfo test;

    @BeforeEach
    void remember(TestInfo test) {
        this.test = test;
    }

    @Test
    void theWaitOfAClassicClientIsDistinguished() throws Exception {
        check(HttpApplication.class, AgentJvm.applicationPath(), "classic", "0");
    }

    @Test
    void theWaitOfAnAsynchronousClientIsDistinguished() throws Exception {
        check(HttpApplication.class, AgentJvm.applicationPath(), "async", "0");
    }

    /** If this fails, each client that a builder builds after the first counts everything once more. */
    @Test
    void aBuilderThatIsUsedAgainIsMeasuredOnce() throws Exception {
        check(HttpApplication.class, AgentJvm.applicationPath(), "classic", "2");
    }

    /** As in an application server: the JVM's own class path has nothing of the application. */
    @Test
    void anApplicationInALoaderOfItsOwnIsMeasured() throws Exception {
        check(LoaderApplication.class, tests(), "classic", "0", "apart", AgentJvm.applicationPath());
    }

    /** The library is there twice, and the application searches its own jars first. */
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
                Trials.report(trial + 1, TRIALS, test);
                return;
            }
        }
        Trials.report(TRIALS, TRIALS, test);
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
            assertEquals("", ended.err(), "nothing went wrong");
            List<Call> calls = ended.out().stream().map(line -> call(line, upstream)).toList();
            String server = "-localhost_" + upstream.port();
            List<Double> waits = Logs.ms(record, "http.client.connection.wait_time" + server);
            List<Double> services = Logs.ms(record, "http.client.request.duration" + server);
            List<Double> wholes = Logs.ms(record, "http.client.call.duration" + server);
            checkBounds(calls, waits, services, wholes);
            if (!IS_LONG) {
                boolean isTheCase = waits.get(1) < DELAY_MS / 2.0
                        && waits.get(2) > DELAY_MS / 2.0
                        && services.get(3) < DELAY_MS * 1.5;
                return isTheCase ? "" : waits + " is not two who wait and two who do not, or is in " + services;
            }
            return far(List.of(0, 0, DELAY_MS, DELAY_MS), waits)
                    + far(List.of(DELAY_MS, DELAY_MS, DELAY_MS, DELAY_MS), services)
                    + far(List.of(DELAY_MS, DELAY_MS, 2 * DELAY_MS, 2 * DELAY_MS), wholes);
        }
    }

    /** One call as seen by its caller and by the server. */
    private record Call(long begunNs, long arrivedNs, long readyNs, long endedNs) {}

    private static Call call(String line, Upstream upstream) {
        String[] parts = line.split(",");
        Upstream.Answer answer = upstream.answer(parts[0]);
        return new Call(Long.parseLong(parts[1]), answer.arrivedNs(), answer.readyNs(), Long.parseLong(parts[2]));
    }

    private static void checkBounds(List<Call> calls, List<Double> waits, List<Double> services, List<Double> wholes) {
        assertEquals(4, calls.size());
        checkAtMost(waits, calls, call -> call.arrivedNs - call.begunNs);
        checkAtMost(services, calls, call -> call.endedNs - call.begunNs);
        checkAtMost(wholes, calls, call -> call.endedNs - call.begunNs);
        List<Double> least = sorted(calls, call -> call.readyNs - call.arrivedNs);
        for (int i = 0; i < least.size(); i++) {
            assertTrue(services.get(i) >= least.get(i), services + " is less than the server took: " + least);
            assertTrue(wholes.get(i) >= least.get(i), wholes + " is less than the server took: " + least);
        }
    }

    private static void checkAtMost(List<Double> reported, List<Call> calls, ToLongFunction<Call> mostNs) {
        List<Double> most = sorted(calls, mostNs);
        assertEquals(most.size(), reported.size(), reported.toString());
        for (int i = 0; i < most.size(); i++) {
            assertTrue(reported.get(i) <= Logs.upTo(most.get(i)), reported + " is more than can be: " + most);
        }
    }

    private static List<Double> sorted(List<Call> calls, ToLongFunction<Call> ns) {
        return calls.stream().map(call -> ns.applyAsLong(call) / 1e6).sorted().toList();
    }

    private static String far(List<Integer> expected, List<Double> seen) {
        assertEquals(expected.size(), seen.size(), seen.toString());
        boolean isFar = false;
        for (int i = 0; i < seen.size(); i++) {
            isFar |= seen.get(i) < expected.get(i) - WITHIN_MS
                    || seen.get(i) > Logs.upTo(expected.get(i) + WITHIN_MS);
        }
        return isFar ? seen + " is not " + expected + "; " : "";
    }
}
