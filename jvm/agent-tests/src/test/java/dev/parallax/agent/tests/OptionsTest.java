package dev.parallax.agent.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
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

    /** A record that is there already is not written over, and that is no reason to do nothing. */
    @Test
    void aRecordThatIsThereStaysAsItIs() throws Exception {
        Files.writeString(folder.resolve("run.json"), "mine");
        AgentJvm.Ended ended = new AgentJvm(folder).run("log=off,out=" + folder, OptionsApplication.class);
        assertEquals(List.of("ran"), ended.out());
        assertTrue(ended.err().matches("parallax-agent: no record: [^\n]*\n"), ended.err());
        assertEquals("mine", Files.readString(folder.resolve("run.json")));
    }

    /** If this fails, a web page that a developer looks at reads his application's figures. */
    @Test
    void theEndpointAnswersLocalhostOnlyAndGetOnly() throws Exception {
        AgentJvm jvm = new AgentJvm(folder).start("log=off,endpoint=0", OptionsApplication.class, "waits");
        jvm.until("ready");
        String err = Files.readString(folder.resolve("err"));
        int port = Integer.parseInt(err.replaceAll("(?s).*http://localhost:([0-9]+)/.*", "$1"));
        String text = ask(port, "GET / HTTP/1.1\r\nHost: localhost:" + port);
        long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
        // Before the meter has looked there is nothing to tell.
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

    private static String ask(int port, String head) throws Exception {
        try (Socket socket = new Socket("localhost", port)) {
            socket.getOutputStream().write((head + "\r\nConnection: close\r\n\r\n").getBytes(StandardCharsets.US_ASCII));
            return new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        }
    }
}
