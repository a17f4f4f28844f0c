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

    /**
     * If this fails, a file system that hangs keeps an application from exiting. There are two applications at once,
     * because each takes its time: for one of them a line reports the hang, and the other's standard error is full, and
     * read by nobody.
     */
    @Test
    void anApplicationEndsThoughItsRecordCannotBeWrittenNorAnyLine() throws Exception {
        Path silent = Files.createDirectory(folder.resolve("silent"));
        AgentJvm full = new AgentJvm(silent)
                .under("sh", "-c", "mkfifo \"$0\" && exec \"$@\" 2<>\"$0\"", silent.resolve("pipe").toString())
                .start("log=off,out=" + silent.resolve("record"), HookApplication.class, "hangs", "fills");
        Path record = folder.resolve("record");
        AgentJvm.Ended ended = new AgentJvm(folder).run("log=off,out=" + record, HookApplication.class, "hangs");
        assertEquals("parallax-agent: gave up writing at exit: it takes longer than 3 s\n", ended.err());
        assertEquals(0, full.end().status());
    }

    /** If this fails, who is interrupted and ends the JVM for that loses what came after the last interval. */
    @Test
    void whoEndsTheJvmThoughInterruptedWaitsForTheLastWrite() throws Exception {
        Path record = folder.resolve("record");
        // The flight recorder has a hook, and who waits for a hook is not interrupted any more.
        AgentJvm.Ended ended =
                new AgentJvm(folder).run("log=off,causes=off,out=" + record, HookApplication.class, "interrupted");
        assertEquals("", ended.err());
        assertEquals(true, Files.readString(record.resolve("run.json")).contains("\"finished\""));
    }
}
