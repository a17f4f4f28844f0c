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

    /** If this fails, a pool's wait is told as the database's time, or what the application counts itself is not. */
    @Test
    void waitAndUseOfAPoolAreToldApartAndItsOwnTrackerIsTold() throws Exception {
        Path record = folder.resolve("record");
        AgentJvm.Ended ended = new AgentJvm(folder).run("log=off,out=" + record, PoolApplication.class);
        assertEquals("", ended.err());
        assertEquals(4, ended.number("acquired"));
        assertEquals(4, ended.number("used"));
        List<Double> waits = Logs.ms(record, "db.client.connection.wait_time-orders");
        List<Double> uses = Logs.ms(record, "db.client.connection.use_time-orders");
        assertEquals(6, waits.size(), "two at the start, then four");
        assertEquals(6, uses.size());
        // Two had to wait until the first two were done; nobody keeps a connection for less than he sleeps.
        assertTrue(waits.get(3) < 0.9 * PoolApplication.KEEP_MS, waits.toString());
        assertTrue(waits.get(4) >= 0.9 * PoolApplication.KEEP_MS, waits.toString());
        assertTrue(uses.get(2) >= PoolApplication.KEEP_MS, uses.toString());
        assertTrue(Logs.ms(record, "db.client.connection.create_time-orders").size() >= 2);
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
