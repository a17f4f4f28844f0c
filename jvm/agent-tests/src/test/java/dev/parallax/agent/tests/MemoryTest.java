package dev.parallax.agent.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** There is no memory for a while, which affects the agent, too, because it allocates a thousand times per second. */
@Tag("alone")
class MemoryTest {
    private static final long STOP_MS = 100;
    private static final Pattern AT = Pattern.compile("\"(?:start_ns|at_ns)\":([0-9]+)");
    private static final Pattern STARTED = Pattern.compile("\"started_monotonic_ns\":([0-9]+)");

    @TempDir
    private Path folder;

    private Path record;
    private AgentJvm jvm;

    /** If this fails, the agent ends an application that would have survived, or stops reporting. */
    @Test
    void whoLivesWithoutMemoryForAWhileLivesOnWithTheAgentWhichLooksOn() throws Exception {
        record = folder.resolve("record");
        jvm = new AgentJvm(folder)
                .with("-Xmx32m", "-XX:+UseSerialGC")
                .start("log=off,interval=100ms,out=" + record, MemoryApplication.class);
        jvm.until("ready");
        // All of its parts are at work: before that, the first refusal would be their start's.
        stop();
        untilThereIs("events.ndjson", "\"text\":\"hiccup of ", 0);
        jvm.write("go");
        jvm.until("survived");
        long survivedNs = Files.readAllLines(folder.resolve("out")).stream()
                .filter(line -> line.startsWith("survived_ns="))
                .mapToLong(line -> Long.parseLong(line.substring("survived_ns=".length())))
                .findFirst()
                .orElseThrow();
        untilThereIs("series.ndjson", "\"jvm.hiccup\":", survivedNs);
        stop();
        untilThereIs("events.ndjson", "\"text\":\"hiccup of ", survivedNs);
        jvm.write("end");
        AgentJvm.Ended ended = jvm.end();
        assertEquals(0, ended.status(), ended.err());
        List<String> refused = ended.err().lines().filter(line -> line.contains("for a second: java.lang.OutOfMemoryError")).toList();
        assertTrue(!refused.isEmpty(), "nothing was refused: " + ended.err());
        assertEquals(refused.size(), refused.stream().distinct().count(), "said again: " + ended.err());
    }

    /** So that there is a hiccup. */
    private void stop() throws Exception {
        new ProcessBuilder("kill", "-STOP", Long.toString(jvm.pid())).start().waitFor();
        Thread.sleep(STOP_MS);
        new ProcessBuilder("kill", "-CONT", Long.toString(jvm.pid())).start().waitFor();
    }

    /** Waits for such a line of what was after that. */
    private void untilThereIs(String file, String text, long afterNs) throws Exception {
        long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (!isThere(file, text, afterNs)) {
            if (System.nanoTime() - endNs > 0 || !ProcessHandle.of(jvm.pid()).map(ProcessHandle::isAlive).orElse(false)) {
                throw new AssertionError("no " + text + ": " + jvm.err());
            }
            Thread.sleep(20);
        }
    }

    private boolean isThere(String file, String text, long afterNs) throws Exception {
        if (!Files.exists(record.resolve(file))) {
            return false;
        }
        Matcher started = STARTED.matcher(Files.readString(record.resolve("run.json")));
        assertTrue(started.find());
        long zeroNs = Long.parseLong(started.group(1));
        for (String line : Files.readAllLines(record.resolve(file))) {
            Matcher at = AT.matcher(line);
            if (line.contains(text) && at.find() && zeroNs + Long.parseLong(at.group(1)) >= afterNs) {
                return true;
            }
        }
        return false;
    }
}
