package dev.parallax.pauses;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Linux' own accounts, of this process and as files of other hosts hold them. */
final class PlatformTest {
    @TempDir
    private Path root;

    @Test
    void this_process_has_a_run_queue_account() {
        final PlatformReading reading = Platform.own().read();
        assertTrue(reading.runQueueByThread().size() > 1, reading.toString());
        assertTrue(reading.stolenNs().isPresent(), reading.toString());
    }

    @Test
    void a_group_of_version_2_counts_microseconds() throws IOException {
        write("proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n");
        write("proc/self/cgroup", "0::/service/web\n");
        write("sys/fs/cgroup/service/web/cpu.stat", "usage_usec 9\nnr_throttled 2\nthrottled_usec 1500\n");
        assertEquals(OptionalLong.of(1_500_000), Platform.under(root).read().throttledNs());
    }

    @Test
    void a_group_of_version_1_counts_nanoseconds() throws IOException {
        write("proc/self/mountinfo",
            "31 23 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
            + "32 23 0:29 /docker/abc /sys/fs/cgroup/cpu,cpuacct rw master:3 - cgroup cgroup rw,cpu,cpuacct\n");
        write("proc/self/cgroup", "4:cpu,cpuacct:/docker/abc/inner\n0::/\n");
        write("sys/fs/cgroup/cpu,cpuacct/inner/cpu.stat", "nr_periods 9\nnr_throttled 2\nthrottled_time 777\n");
        assertEquals(OptionalLong.of(777), Platform.under(root).read().throttledNs());
    }

    @Test
    void what_cannot_be_read_is_absent_with_its_reason() {
        final PlatformReading reading = Platform.under(root).read();
        assertEquals(OptionalLong.empty(), reading.throttledNs());
        assertEquals(OptionalLong.empty(), reading.stolenNs());
        assertEquals(OptionalLong.empty(), reading.since(reading).runQueueNs());
        assertTrue(reading.missing().size() >= 3, reading.missing().toString());
    }

    /** A thread that ended takes its account along, and its number may be another thread's next time. */
    @Test
    void threads_come_and_go_between_two_readings() throws IOException {
        thread(1, 1_000);
        thread(2, 5_000);
        thread(3, 9_000);
        final PlatformReading before = Platform.under(root).read();
        thread(1, 1_300);
        Files.delete(root.resolve("proc/self/task/2/schedstat"));
        thread(3, 20);
        thread(4, 4);
        assertEquals(OptionalLong.of(324), Platform.under(root).read().since(before).runQueueNs());
    }

    private void thread(final int number, final long waitedNs) throws IOException {
        write("proc/self/task/" + number + "/schedstat", "77 " + waitedNs + " 3\n");
    }

    private void write(final String file, final String text) throws IOException {
        final Path path = root.resolve(file);
        Files.createDirectories(path.getParent());
        Files.writeString(path, text);
    }
}
