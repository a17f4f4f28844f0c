package dev.parallax.agent.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PoolTest {
    @TempDir
    private Path folder;

    /** If this fails, a pool's wait is reported as the database's time, or what the application counts itself is not. */
    @Test
    void waitAndUseOfAPoolAreDistinguishedAndItsOwnTrackerIsReported() throws Exception {
        Path record = folder.resolve("record");
        AgentJvm.Ended ended = new AgentJvm(folder).run("log=off,out=" + record, PoolApplication.class);
        assertEquals("", ended.err());
        assertEquals(4, ended.number("acquired"));
        assertEquals(4, ended.number("used"));
        List<Double> waits = Logs.ms(record, "db.client.connection.wait_time-orders");
        List<Double> uses = Logs.ms(record, "db.client.connection.use_time-orders");
        assertEquals(6, waits.size(), "two at the start, then four");
        assertEquals(6, uses.size());
        // Two waited for as long as two others kept theirs; and each of the four keeps one for at least as long as it
        // sleeps.
        assertTrue(waits.get(4) >= PoolApplication.KEEP_MS, waits.toString());
        assertTrue(uses.get(2) >= PoolApplication.KEEP_MS, uses.toString());
        // A caller's wait is not part of its use, whatever the host does.
        List<Double> mostOfWaits = callers(ended, 0);
        for (int i = 0; i < waits.size(); i++) {
            assertTrue(waits.get(i) <= Logs.upTo(mostOfWaits.get(i)), waits + " of " + mostOfWaits);
        }
        double reported = sum(waits) + sum(uses);
        assertTrue(reported <= Logs.upTo(sum(callers(ended, 1))), waits + " and " + uses + " of " + callers(ended, 1));
        assertTrue(Logs.ms(record, "db.client.connection.create_time-orders").size() >= 2);
    }

    /** What the callers saw themselves, in milliseconds, sorted: 0 for their waits, 1 for the whole. */
    private static List<Double> callers(AgentJvm.Ended ended, int which) {
        return ended.out().stream()
                .filter(line -> line.startsWith("use="))
                .map(line -> Long.parseLong(line.substring("use=".length()).split(",")[which]) / 1e6)
                .sorted()
                .toList();
    }

    private static double sum(List<Double> ms) {
        return ms.stream().mapToDouble(one -> one).sum();
    }

    /** If this fails, what a pool had done is in the record once more when others of its name are gone. */
    @Test
    void poolsOfOneNameThatComeAndGoAreCountedOnce() throws Exception {
        Path record = folder.resolve("record");
        AgentJvm.Ended ended =
                new AgentJvm(folder).run("log=off,interval=100ms,out=" + record, PoolsApplication.class);
        assertEquals("", ended.err());
        for (String series : List.of("wait_time", "use_time")) {
            assertEquals(ended.number("borrowed"), Logs.ms(record, "db.client.connection." + series + "-main").size());
        }
    }

    /** If this fails, one moment without memory ends what is reported of a pool, for as long as the JVM lives. */
    @Test
    void whatIsRefusedOnceIsReportedAgainLater() throws Exception {
        Path record = folder.resolve("record");
        AgentJvm.Ended ended = new AgentJvm(folder).run("log=off,out=" + record, RefusedApplication.class);
        assertEquals(
                """
                parallax-agent: some events of HIKARI_BORROW are lost: java.lang.OutOfMemoryError: planted
                parallax-agent: some events of HIKARI_BORROW are lost: java.lang.StackOverflowError: planted
                """,
                ended.err());
        assertEquals(2 * RefusedApplication.TIMES, Logs.ms(record, "db.client.connection.wait_time-orders").size());
        assertEquals(4 * RefusedApplication.TIMES, Logs.ms(record, "db.client.connection.use_time-orders").size());
    }

    /** If this fails, an application that has our modules or our starter counts everything twice. */
    @Test
    void whatMeasuresItselfIsLeftAlone() throws Exception {
        Path record = folder.resolve("record");
        try (Upstream upstream = new Upstream(0)) {
            AgentJvm.Ended ended = new AgentJvm(folder)
                    .classPath(AgentJvm.measuredPath())
                    .run("log=off,out=" + record, OwnMetricsApplication.class, upstream.url());
            assertEquals("", ended.err());
            assertEquals(1, ended.number("waits"));
            assertEquals(1, ended.number("uses"));
        }
        assertEquals(List.of(), logs(record, "http.client"));
        assertEquals(List.of(), logs(record, "db.client"));
    }

    private static List<String> logs(Path record, String prefix) throws IOException {
        try (Stream<Path> files = Files.list(record)) {
            return files.map(file -> file.getFileName().toString()).filter(name -> name.startsWith(prefix)).toList();
        }
    }
}
