package dev.parallax.vertx;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * A process that can be sent signals and ends when this JVM does, however that ends: its parent is a shell that kills
 * it when its own standard input closes. A stopped process would otherwise remain for ever.
 */
final class ChildProcess implements AutoCloseable {
    private final Process shell;
    private final BufferedReader says;

    /** @param last signal that ends it, as named by the shell */
    ChildProcess(String last, List<String> command) throws IOException {
        List<String> all = new ArrayList<>(List.of("sh", "-c", "exec 3<&0; \"$@\" </dev/null & child=$!\n"
                + "while read -r signal <&3; do kill -$signal $child; done\n"
                + "kill -CONT $child; kill -" + last + " $child; wait $child", "leash"));
        all.addAll(command);
        shell = new ProcessBuilder(all).redirectErrorStream(true).start();
        says = new BufferedReader(new InputStreamReader(shell.getInputStream()));
    }

    void signal(String name) throws IOException {
        OutputStream to = shell.getOutputStream();
        to.write((name + "\n").getBytes(StandardCharsets.US_ASCII));
        to.flush();
    }

    /** The rest of its output, once it has ended. */
    String output() throws IOException {
        StringBuilder all = new StringBuilder();
        for (String line = says.readLine(); line != null; line = says.readLine()) {
            all.append(line).append('\n');
        }
        return all.toString();
    }

    @Override
    public void close() throws IOException {
        shell.getOutputStream().close();
        try {
            if (!shell.waitFor(20, TimeUnit.SECONDS)) {
                shell.destroyForcibly();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
