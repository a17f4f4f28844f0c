package dev.parallax.agent.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Libraries that are just old enough not to be measured, and those that are just not. */
class OlderTest {
    private static final String HTTP = System.getProperty("older.httpclient5");
    private static final String HIKARI = System.getProperty("older.hikaricp");

    @TempDir
    private Path folder;

    /** If this fails, users with an older library look for missing figures, and nothing reports why. */
    @Test
    void oneLineForEachSaysWhatIsNotWatchedAndWhichVersionWouldBe() throws Exception {
        Path record = folder.resolve("record");
        try (Upstream upstream = new Upstream(0)) {
            AgentJvm.Ended ended = new AgentJvm(folder)
                    .classPath(AgentJvm.withJars("older.jars", AgentJvm.applicationPath()))
                    .run("log=off,out=" + record, OlderApplication.class, upstream.url());
            assertEquals(List.of("status=200", "ran"), ended.out());
            assertEquals(
                    "parallax-agent: HttpClient " + HTTP + " is not instrumented; minimum version is 5.6\n"
                            + "parallax-agent: HikariCP " + HIKARI + " is not instrumented; minimum version is 5.0.1\n",
                    ended.err());
        }
        assertEquals(List.of(), Logs.ms(record, "http.client"));
        assertEquals(List.of(), Logs.ms(record, "db.client"));
    }

    /** If this fails, the minimum versions differ from the reported ones. */
    @Test
    void theMinimumVersionsAreMeasured() throws Exception {
        Path record = folder.resolve("record");
        try (Upstream upstream = new Upstream(0)) {
            AgentJvm.Ended ended = new AgentJvm(folder)
                    .classPath(AgentJvm.withJars("least.jars", AgentJvm.applicationPath()))
                    .run("log=off,out=" + record, OlderApplication.class, upstream.url());
            assertEquals(List.of("status=200", "ran"), ended.out());
            assertEquals("", ended.err());
        }
        for (String series : List.of("http.client.connection.wait", "http.client.call.duration",
                "db.client.connection.wait", "db.client.connection.use")) {
            assertEquals(1, Logs.ms(record, series).size(), series);
        }
        assertTrue(Logs.ms(record, "db.client.connection.create_time").size() >= 1);
    }

    /** If this fails, an application that measures itself gets an error of the JVM, or a client that is half changed. */
    @Test
    void anApplicationThatMeasuresItselfIsReportedWhichVersionItNeeds() throws Exception {
        try (Upstream upstream = new Upstream(0)) {
            AgentJvm.Ended ended = new AgentJvm(folder)
                    .classPath(AgentJvm.withJars("older.jars", AgentJvm.measuredPath()))
                    .run(null, OlderApplication.class, upstream.url(), "measured");
            String refused = "HttpClient " + HTTP + " cannot be measured; version 5.6 or later is required";
            assertEquals(List.of(refused, refused, refused, "status=200", "ran"), ended.out());
            assertEquals("", ended.err());
        }
    }
}
