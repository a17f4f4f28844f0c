package dev.parallax.agent.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What is between the end of an application's work and the end of its JVM. */
class HookTest {
    private static final int DELAY_MS = 500;

    @TempDir
    private Path folder;

    /** If this fails, what a service does while it ends well is missing. */
    @Test
    void whatTheApplicationsOwnShutdownHooksDoIsInTheRecord() throws Exception {
        Path record = folder.resolve("record");
        try (Upstream upstream = new Upstream(DELAY_MS)) {
            AgentJvm.Ended ended =
                    new AgentJvm(folder).run("log=off,out=" + record, HookApplication.class, "asks", upstream.url());
            assertEquals("", ended.err());
            assertEquals(Collections.nCopies(HookApplication.TIMES, "ok"), ended.out());
            String log = "http.client.request.duration-localhost_" + upstream.port() + "_GET_200";
            assertEquals(HookApplication.TIMES, Logs.ms(record, log).size());
        }
        assertEquals(true, Files.readString(record.resolve("run.json")).contains("\"finished\""));
    }

    /** If this fails, a file system that hangs keeps an application from ending, for ever. */
    @Test
    void anApplicationEndsThoughItsRecordCannotBeWritten() throws Exception {
        Path record = folder.resolve("record");
        AgentJvm.Ended ended = new AgentJvm(folder).run("log=off,out=" + record, HookApplication.class, "hangs");
        assertEquals("parallax-agent: not all was written at the end: it takes longer than 3 s\n", ended.err());
    }
}
