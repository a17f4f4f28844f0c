package dev.parallax.agent.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.tools.attach.VirtualMachine;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A running application gets the agent, or one line reports why not; either way it continues. */
class AttachTest {
    /** From this version on the JVM itself reports on standard error that an agent was loaded. */
    private static final int JVM_WARNS_SINCE = 21;

    @TempDir
    private Path folder;

    /** If this fails, what ran before the agent came is not seen, or an agent that came twice counts twice. */
    @Test
    void anAgentThatComesLateMeasuresFromThenOnAndOnlyOnce() throws Exception {
        Path record = folder.resolve("record");
        String options = "log=off,out=" + record;
        try (Upstream upstream = new Upstream(0)) {
            AgentJvm jvm = new AgentJvm(folder).start(null, AttachApplication.class, upstream.url());
            jvm.until("answered ok");

            load(jvm, "nonsense=1");
            assertLine("off: unknown option 'nonsense'; `help` lists the options", jvm, 1);
            ask(jvm, "without");

            AgentJvm.Ended program = attach(jvm.pid(), options);
            assertEquals(0, program.status(), program.err());
            assertEquals("parallax-agent: loaded into " + jvm.pid() + "; its messages are on that process's standard error\n",
                    program.err());
            ask(jvm, "once");

            load(jvm, options);
            assertLine("not done: already running; only disturb=MODE can be changed", jvm, 2);
            ask(jvm, "twice");

            load(jvm, "hiccup=fast");
            assertTrue(said(jvm).get(2).startsWith("parallax-agent: not done: hiccup=fast is invalid; "), jvm.err());
            jvm.write("end");
            AgentJvm.Ended ended = jvm.end();
            assertEquals(List.of("answered ok", "without ok", "once ok", "twice ok", "ran"), words(ended));

            assertEquals(3, said(jvm).size(), jvm.err());
            boolean doesJvmWarn = Runtime.version().feature() >= JVM_WARNS_SINCE;
            assertEquals(doesJvmWarn, jvm.err().contains("WARNING: A Java agent has been loaded dynamically"), jvm.err());
            assertEquals(4, upstream.answers().get("GET 200"));
            String log = "http.client.request.duration-localhost_" + upstream.port() + "_GET_200";
            assertEquals(2, Logs.ms(record, log).size(), "those that came after the agent, each once");
            assertEquals(2, Logs.ms(record, "db.client.connection.wait_time-early").size());
            // When the plain pool lent its earlier connections is unknown; the tracked pool knows it.
            assertUses(record, "early", ended, "once", "twice");
            assertUses(record, "tracked", ended, "tracked");
        }
    }

    @Test
    void aJvmThatMayNotBeAttachedToIsLeftAloneAndOneLineSaysSo() throws Exception {
        checkThatItIsRefused("-XX:+DisableAttachMechanism", "The VM does not support the attach mechanism");
    }

    @Test
    void aJvmThatLoadsNoAgentsIsLeftAloneAndOneLineSaysSo() throws Exception {
        checkThatItIsRefused("-XX:-EnableDynamicAgentLoading", "");
    }

    private void checkThatItIsRefused(String jvmOption, String why) throws Exception {
        try (Upstream upstream = new Upstream(0)) {
            AgentJvm jvm = new AgentJvm(folder).with(jvmOption).start(null, AttachApplication.class, upstream.url());
            jvm.until("answered ok");
            AgentJvm.Ended program = attach(jvm.pid(), "log=off");
            assertEquals(1, program.status());
            assertTrue(
                    program.err().matches("parallax-agent: not attached to " + jvm.pid() + ": [^\n]*" + why
                            + "[^\n]*; start the application with -javaagent:parallax-agent.jar instead\n"),
                    program.err());
            ask(jvm, "still");
            jvm.write("end");
            assertEquals(List.of("answered ok", "still ok", "ran"), words(jvm.end()));
            assertEquals("", jvm.err(), "the application is not told");
        }
    }

    /** Options are read before anybody is bothered. */
    @Test
    void whatCannotBeAttachedIsOneLineAndAStatus() throws Exception {
        AgentJvm.Ended bad = attach(ProcessHandle.current().pid(), "hiccup=fast");
        assertEquals(1, bad.status());
        assertTrue(bad.err().matches("parallax-agent: not attached: hiccup=fast is invalid; [^\n]*\n"), bad.err());
        Process other = new ProcessBuilder("sleep", "60").start();
        try {
            AgentJvm.Ended none = attach(other.pid(), "");
            assertEquals(1, none.status());
            assertTrue(none.err().contains("no JVM with this process id accepts agents"), none.err());
            assertTrue(other.isAlive(), "it was asked, and ended");
        } finally {
            other.destroyForcibly();
        }
        AgentJvm.Ended spaces = new AgentJvm(Files.createTempDirectory(folder, "attach")).program("attach", "1", "a=b", "c=d");
        assertEquals(1, spaces.status());
        assertTrue(spaces.err().startsWith("parallax-agent: not attached: usage is attach PID ["), spaces.err());
        AgentJvm.Ended nobody = attach("no-pid", "");
        assertEquals(1, nobody.status());
        assertTrue(nobody.err().matches("parallax-agent: not attached to no-pid: [^\n]*\n"), nobody.err());
        AgentJvm.Ended command = new AgentJvm(Files.createTempDirectory(folder, "attach")).program("attach-to", "1");
        assertEquals(2, command.status());
        assertEquals("parallax-agent: unknown command 'attach-to'; commands are attach and help\n", command.err());
    }

    /** The application's output except its uses. */
    private static List<String> words(AgentJvm.Ended ended) {
        return ended.out().stream().filter(line -> !line.startsWith("use ")).toList();
    }

    /** Those that are reported of a pool are these, and each as long as the application's own stamps allow. */
    private static void assertUses(Path record, String pool, AgentJvm.Ended ended, String... uses) throws Exception {
        List<Double> reported = Logs.ms(record, "db.client.connection.use_time-" + pool);
        List<Double> least = usesMs(ended, 0, uses);
        List<Double> most = usesMs(ended, 1, uses);
        assertEquals(uses.length, reported.size(), reported.toString());
        for (int i = 0; i < uses.length; i++) {
            assertTrue(reported.get(i) >= least.get(i), reported + " of at least " + least);
            assertTrue(reported.get(i) <= Logs.upTo(most.get(i)), reported + " of at most " + most);
        }
    }

    /** Sorted. */
    private static List<Double> usesMs(AgentJvm.Ended ended, int which, String... uses) {
        return Stream.of(uses)
                .map(use -> "use " + use + "=")
                .map(name -> ended.out().stream().filter(line -> line.startsWith(name)).findFirst().orElseThrow()
                        .substring(name.length()))
                .map(both -> Long.parseLong(both.split(",")[which]) / 1e6)
                .sorted()
                .toList();
    }

    private AgentJvm.Ended attach(Object pid, String options) throws Exception {
        return new AgentJvm(Files.createTempDirectory(folder, "attach")).program("attach", pid.toString(), options);
    }

    /** As other tools attach an agent, without any check of ours before. */
    private static void load(AgentJvm jvm, String options) throws Exception {
        VirtualMachine machine = VirtualMachine.attach(Long.toString(jvm.pid()));
        machine.loadAgent(AgentJvm.agent().toString(), options);
        machine.detach();
    }

    private static void ask(AgentJvm jvm, String word) throws Exception {
        jvm.write(word);
        jvm.until(word + " ok");
    }

    private static void assertLine(String text, AgentJvm jvm, int count) throws Exception {
        List<String> said = said(jvm);
        assertEquals(count, said.size(), said.toString());
        assertEquals("parallax-agent: " + text, said.get(count - 1));
    }

    /** Everything except what the JVM itself prints. */
    private static List<String> said(AgentJvm jvm) throws Exception {
        return jvm.err().lines().filter(line -> !line.startsWith("WARNING: ")).toList();
    }
}
