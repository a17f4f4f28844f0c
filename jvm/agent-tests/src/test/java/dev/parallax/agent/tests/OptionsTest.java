package dev.parallax.agent.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class OptionsTest {
    @TempDir
    private Path folder;

    /** If this fails, a typing error in a start script takes an application down. */
    @Test
    void aBadOptionDisablesTheAgentWithOneLineAndTheApplicationRuns() throws Exception {
        for (String bad : List.of("nonsense=1", "hiccup=fast", "endpoint=99999", "disturb=earthquake", "canary=on,canary=on")) {
            AgentJvm.Ended ended = new AgentJvm(folder).run(bad, OptionsApplication.class);
            assertEquals(List.of("ran"), ended.out());
            assertTrue(ended.err().matches("parallax-agent: off: [^\n]*\n"), ended.err());
        }
    }

    @Test
    void helpNamesEveryOptionAndTheApplicationRuns() throws Exception {
        AgentJvm.Ended ended = new AgentJvm(folder).run("help", OptionsApplication.class);
        assertEquals(List.of("ran"), ended.out());
        for (String option : List.of("out", "interval", "hiccup", "canary", "causes", "control", "log", "endpoint",
                "instrument", "disturb", "disturb-rate", "disturb-share", "disturb-after", "disturb-for")) {
            assertTrue(ended.err().contains("\n  " + option + "="), option + " in " + ended.err());
        }
    }

    /** An existing record is not overwritten, and everything else still works. */
    @Test
    void aRecordThatIsThereStaysAsItIs() throws Exception {
        Files.writeString(folder.resolve("run.json"), "mine");
        AgentJvm.Ended ended = new AgentJvm(folder).run("log=off,out=" + folder, OptionsApplication.class);
        assertEquals(List.of("ran"), ended.out());
        assertTrue(ended.err().matches("parallax-agent: no record: [^\n]*\n"), ended.err());
        assertEquals("mine", Files.readString(folder.resolve("run.json")));
    }

    /** If this fails, a web page open in a developer's browser can read the application's figures. */
    @Test
    void theEndpointAnswersLocalhostOnlyAndGetOnly() throws Exception {
        AgentJvm jvm = new AgentJvm(folder).start("log=off,endpoint=0", OptionsApplication.class, "waits");
        jvm.until("ready");
        int port = port(jvm);
        String text = ask(port, "GET / HTTP/1.1\r\nHost: localhost:" + port);
        long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
        // Before the meter's first wake-up there is nothing to report.
        while (!text.contains("jvm.hiccup") && System.nanoTime() - endNs < 0) {
            Thread.sleep(10);
            text = ask(port, "GET / HTTP/1.1\r\nHost: localhost:" + port);
        }
        assertTrue(text.contains("jvm.hiccup"), text);
        String json = ask(port, "GET /json HTTP/1.1\r\nHost: 127.0.0.1:" + port);
        JsonNode tree = new ObjectMapper().readTree(json.substring(json.indexOf("\r\n\r\n") + 4));
        assertTrue(tree.get("series").size() > 0, json);
        assertEquals("HTTP/1.1 403", ask(port, "GET /json HTTP/1.1\r\nHost: attacker.example:" + port).substring(0, 12));
        assertEquals("HTTP/1.1 403", ask(port, "GET /json HTTP/1.1\r\nHost: localhost.attacker.example").substring(0, 12));
        assertEquals("HTTP/1.1 403", ask(port, "GET /json HTTP/1.0").substring(0, 12));
        assertEquals("HTTP/1.1 405", ask(port, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0").substring(0, 12));
        assertEquals("HTTP/1.1 404", ask(port, "GET /../etc HTTP/1.1\r\nHost: localhost").substring(0, 12));
        jvm.write("end");
        assertEquals(List.of("ready", "ran"), jvm.end().out());
    }

    /**
     * If this fails, any user of the host can use up an application's descriptors, until it cannot open anything any
     * more.
     */
    @Test
    void whoeverConnectsTakesAFewDescriptorsAndKeepsNobodyOut() throws Exception {
        AgentJvm jvm = new AgentJvm(folder).start("log=off,hiccup=off,endpoint=0", OptionsApplication.class, "waits");
        jvm.until("ready");
        int port = port(jvm);
        long before = sockets(jvm.pid());
        List<Socket> idle = new ArrayList<>();
        try {
            for (int i = 0; i < 200; i++) {
                idle.add(new Socket("localhost", port));
                if (i % 2 == 0) {
                    idle.get(i).getOutputStream().write('G');
                }
                // Sixteen, and one that gives way.
                assertTrue(sockets(jvm.pid()) <= before + 17, "after " + i);
            }
            String text = ask(port, "GET / HTTP/1.1\r\nHost: localhost:" + port);
            assertEquals("HTTP/1.1 200", text.substring(0, 12));
            assertTrue(sockets(jvm.pid()) > before, "the last ones are still there");
        } finally {
            for (Socket socket : idle) {
                socket.close();
            }
        }
        jvm.write("end");
        assertEquals(List.of("ready", "ran"), jvm.end().out());
    }

    private static long sockets(long pid) throws IOException {
        try (Stream<Path> open = Files.list(Path.of("/proc/" + pid + "/fd"))) {
            return open.filter(OptionsTest::isSocket).count();
        }
    }

    private static boolean isSocket(Path link) {
        try {
            return Files.readSymbolicLink(link).toString().startsWith("socket:");
        } catch (IOException e) {
            // Closed since it was listed.
            return false;
        }
    }

    /** If this fails, nobody knows later how often the meter woke up, or what was measured at all. */
    @Test
    void theRecordHasEveryOptionAsItHeld() throws Exception {
        Path record = folder.resolve("record");
        new AgentJvm(folder).run("hiccup=5ms,canary=off,out=" + record, OptionsApplication.class);
        JsonNode options = new ObjectMapper().readTree(record.resolve("run.json").toFile()).get("options");
        Map<String, String> found = new TreeMap<>();
        options.properties().forEach(option -> found.put(
                option.getKey(), option.getValue().get("value").asText() + ", " + option.getValue().get("source").asText()));
        Map<String, String> expected = new TreeMap<>(Map.of(
                "out", record + ", given", "hiccup", "5ms, given", "canary", "off, given"));
        Map.of("interval", "1s", "causes", "on", "control", "off", "log", "100ms", "endpoint", "off", "instrument", "all")
                .forEach((name, value) -> expected.put(name, value + ", default"));
        Map.of("disturb", "off", "disturb-rate", "50MB", "disturb-share", "10%", "disturb-after", "0s", "disturb-for", "60s")
                .forEach((name, value) -> expected.put(name, value + ", default"));
        assertEquals(expected, found);
    }

    private static int port(AgentJvm jvm) throws IOException {
        return Integer.parseInt(jvm.err().replaceAll("(?s).*http://localhost:([0-9]+)/.*", "$1"));
    }

    private static String ask(int port, String head) throws Exception {
        try (Socket socket = new Socket("localhost", port)) {
            socket.getOutputStream().write((head + "\r\nConnection: close\r\n\r\n").getBytes(StandardCharsets.US_ASCII));
            return new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        }
    }
}
