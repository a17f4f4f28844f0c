package dev.parallax.agent.meter;

import dev.parallax.agent.AgentLoader;
import dev.parallax.agent.run.Log;
import dev.parallax.agent.run.Threads;
import dev.parallax.recorder.Recorder;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/**
 * An idle JVM with its own hiccup meter. Both read the same monotonic clock, so hiccups that both have at the same time
 * come from the host. It ends with this JVM in any case, because its standard input closes.
 */
final class Companion implements Runnable {
    private final Process process;
    private final Spans spans;
    private final Recorder hiccups = new Recorder();

    private Companion(Process process, Spans spans) {
        this.process = process;
        this.spans = spans;
    }

    static Optional<Companion> start(AgentLoader agent, long apartNs, Spans spans) {
        Path java = Path.of(System.getProperty("java.home"), "bin", "java");
        List<String> command = List.of(
                java.toString(), "-Xms8m", "-Xmx8m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
                "-cp", agent.file().getPath(), "dev.parallax.agent.Agent", "companion", Long.toString(apartNs));
        try {
            ProcessBuilder builder = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD);
            // These may load this agent, and each companion would start another.
            builder.environment().remove("JAVA_TOOL_OPTIONS");
            builder.environment().remove("JDK_JAVA_OPTIONS");
            builder.environment().remove("_JAVA_OPTIONS");
            builder.directory(new File(System.getProperty("java.home")));
            Companion companion = new Companion(builder.start(), spans);
            companion.listen();
            return Optional.of(companion);
        } catch (IOException | RuntimeException e) {
            Log.line("no control process: " + e.getMessage());
            return Optional.empty();
        }
    }

    private void listen() {
        try {
            Threads.start(this, "parallax-control");
        } catch (Throwable e) {
            end();
            throw e;
        }
    }

    Recorder hiccups() {
        return hiccups;
    }

    void end() {
        process.destroy();
    }

    @Override
    public void run() {
        try (BufferedReader lines =
                new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.US_ASCII))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] words = line.split(" ");
                long beginNs = Long.parseLong(words[0]);
                long lengthNs = Long.parseLong(words[1]);
                spans.add(beginNs, beginNs + lengthNs, "");
                hiccups.record(lengthNs);
            }
        } catch (Throwable e) {
            Log.once("lost the control process", e);
        }
    }

    /**
     * Runs in the companion process.
     *
     * @param apartNs period of its wake-ups
     */
    static void look(long apartNs) {
        Thread end = new Thread(
                () -> {
                    try {
                        while (System.in.read() >= 0) {
                            Thread.onSpinWait();
                        }
                    } catch (IOException e) {
                        // Treated like end of input.
                    }
                    Runtime.getRuntime().halt(0);
                },
                "parallax-end");
        end.setDaemon(true);
        end.start();
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.US_ASCII);
        Recorder all = new Recorder();
        Ticks ticks = new Ticks(apartNs);
        while (!out.checkError()) {
            long dueNs = ticks.dueNs();
            long awakeNs = ticks.await();
            ticks.take(awakeNs, all);
            if (awakeNs - dueNs >= Meter.LEAST_NS) {
                out.println(dueNs + " " + (awakeNs - dueNs));
            }
        }
    }
}
