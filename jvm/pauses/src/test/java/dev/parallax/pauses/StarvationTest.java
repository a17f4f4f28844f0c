package dev.parallax.pauses;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A JVM that gets no CPU does not pause. */
final class StarvationTest {
    private static final int HOGS = 3;

    @TempDir
    private Path directory;

    /**
     * If this fails, a busy neighbour looks like garbage collection. The JVM's own safepoint of every second (JDK 17),
     * a real pause, is off. The sampler, which cannot distinguish the two, and the kernel's own account show that the
     * JVM was starved.
     */
    @Test
    void starvation_is_the_platforms_and_no_pause() throws Exception {
        final Path log = directory.resolve("safepoints");
        final List<Process> hogs = new ArrayList<>();
        final String[] shown;
        try {
            for (int n = 0; n < HOGS; n++) {
                hogs.add(new ProcessBuilder("taskset", "-c", "0", "timeout", "60", "sh", "-c", "while :; do :; done").start());
            }
            shown = ChildJvm.run(
                directory, List.of("taskset", "-c", "0"), List.of(
                    String.format(SafepointLog.OPTION, log),
                    "-XX:+UnlockDiagnosticVMOptions", "-XX:GuaranteedSafepointInterval=0"),
                StarvedJvm.class).get(0).split(" ");
        } finally {
            hogs.forEach(Process::destroy);
        }
        final long runQueueNs = Long.parseLong(shown[4]);
        assertTrue(runQueueNs > 500_000_000, "waited for a CPU for " + runQueueNs + " ns: it was not starved");
        final long sampledNs = Long.parseLong(shown[3]);
        assertTrue(sampledNs > 0, "the sampler saw none of it");

        final List<SafepointLog.Entry> real = SafepointLog.read(log)
            .between(Long.parseLong(shown[0]), Long.parseLong(shown[1]));
        assertEquals(real.stream().mapToLong(SafepointLog.Entry::totalNs).sum(), Long.parseLong(shown[2]));
        assertEquals(List.of(), real, "pauses of its own, and nothing but starvation was to be seen");
    }
}
