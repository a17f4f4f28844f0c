package dev.parallax.pauses;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Which clock a JVM gets, by what it allows. Each JVM here also ends by itself, with its clock left open. */
final class WaysTest {
    private static final String EXPORT = "--add-exports=java.base/jdk.internal.perf=ALL-UNNAMED";

    @TempDir
    private Path directory;

    @Test
    void by_itself_it_reads_the_file() throws Exception {
        check(PauseClock.Way.COUNTERS_FILE, List.of());
    }

    @Test
    void where_the_file_is_hidden_it_asks_the_jvm() throws Exception {
        check(PauseClock.Way.COUNTERS_ATTACHED, List.of("shares no file"), "-XX:+PerfDisableSharedMem", EXPORT);
    }

    @Test
    void an_agent_needs_no_option_for_that() throws Exception {
        final Path jar = ChildJvm.agentJar(directory, WayJvm.class);
        check(PauseClock.Way.COUNTERS_ATTACHED, List.of("shares no file"),
            "-XX:+PerfDisableSharedMem", "-javaagent:" + jar);
    }

    /** Without the option the flight recorder is next, and the reason names the option. */
    @Test
    void where_the_jvm_is_closed_the_flight_recorder_tells() throws Exception {
        check(PauseClock.Way.FLIGHT_RECORDER, List.of("shares no file", "--add-exports"), "-XX:+PerfDisableSharedMem");
    }

    @Test
    void where_there_is_no_recorder_a_thread_samples() throws Exception {
        check(PauseClock.Way.SAMPLER, List.of("shares no file", "--add-exports", "flight recorder"),
            "-XX:-UsePerfData", "--limit-modules=java.base,java.instrument,java.management");
    }

    private void check(final PauseClock.Way way, final List<String> reasons, final String... options) throws Exception {
        final List<String> all = new ArrayList<>(List.of(options));
        all.add("-XX:+UseSerialGC");
        final List<String> lines = ChildJvm.run(directory, List.of(), all, WayJvm.class);
        assertEquals(way.toString(), lines.get(0));
        assertTrue(way == PauseClock.Way.SAMPLER || Long.parseLong(lines.get(1)) > 0, "saw no pause: " + lines);
        assertEquals(reasons.size() + 2, lines.size(), lines.toString());
        for (int n = 0; n < reasons.size(); n++) {
            assertTrue(lines.get(n + 2).contains(reasons.get(n)), lines.get(n + 2));
        }
    }

    /** If this fails, a file that another process left under our number is taken for our counters. */
    @Test
    void only_the_file_that_this_process_maps_is_ours() throws Exception {
        final Path maps = directory.resolve("maps");
        final String line = "7f0000000000-7f0000008000 %s 00000000 fe:00 %d        %s/hsperfdata_me/7";
        Files.writeString(maps, String.format(line, "r--p", 4, directory) + "\n"
            + String.format(line, "r--s", 3, directory) + "\n"
            + "7f0000000000-7f0000008000 rw-s 00000000 fe:00 5\n"
            + String.format(line, "rw-s", 6, directory) + "\n");
        assertEquals(6, PerfMemory.findOwn(maps).inode());
        Files.writeString(maps, "7f0000000000-7f0000008000 r-xp 00000000 fe:00 5 /usr/bin/java\n");
        assertThrows(PauseClock.Unavailable.class, () -> PerfMemory.findOwn(maps));
    }
}
