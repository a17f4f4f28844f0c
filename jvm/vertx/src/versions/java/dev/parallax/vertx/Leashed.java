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
 * A program that can be sent signals, and that ends when this JVM does, however that ends: a shell is its parent, which kills
 * it when nobody writes to the shell any more. One that is stopped would else stand there for ever.
 */
final class Leashed implements AutoCloseable {
    private final Process shell;
    private final BufferedReader says;

    /** @param last the signal that ends it, as the shell names it */
    Leashed(String last, List<String> command) throws IOException {
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

    /** The rest of what it says, once it has ended. */
    String said() throws IOException {
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
