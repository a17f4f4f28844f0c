package dev.parallax.pauses;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.stream.Stream;

/**
 * Reads what Linux withholds from this process: {@code cpu.stat} of its control group (version 1 or 2),
 * {@code /proc/self/task/*}{@code /schedstat} and {@code /proc/stat}.
 * <p>
 * A reading opens one file per thread and some more, a millisecond or two with twenty threads: meant for once per
 * second.
 */
public final class Platform {
    private static final long NS_PER_US = 1_000;
    /** {@code /proc/stat} counts in {@code USER_HZ}, which Linux shows as 100 whatever its own tick is. */
    private static final long NS_PER_TICK = 10_000_000;
    private static final int STEAL_FIELD = 8;

    private final Path root;

    private Platform(final Path root) {
        this.root = root;
    }

    /** {@return the platform of this process} */
    public static Platform own() {
        return new Platform(Path.of("/"));
    }

    /** With other paths for {@code /proc} and {@code /sys}. */
    static Platform under(final Path root) {
        return new Platform(root);
    }

    /**
     * Reads everything that can be read. Never throws.
     *
     * @return what could be read, and what could not.
     */
    public PlatformReading read() {
        final List<String> missing = new ArrayList<>();
        final OptionalLong throttledNs = valueOr(this::throttledNs, "throttling", missing);
        final Map<Long, Long> runQueue = runQueueByThread(missing);
        final OptionalLong stolenNs = valueOr(this::stolenNs, "stolen time", missing);
        return new PlatformReading(throttledNs, runQueue, stolenNs, List.copyOf(missing));
    }

    /** The file in which throttling is counted; null if unknown. */
    Path throttlingFile() {
        try {
            return groupDirectory().resolve("cpu.stat");
        } catch (final IOException | RuntimeException absent) {
            return null;
        }
    }

    private interface Reader {
        long read() throws IOException;
    }

    private static OptionalLong valueOr(final Reader reader, final String what, final List<String> missing) {
        try {
            return OptionalLong.of(reader.read());
        } catch (final IOException | RuntimeException e) {
            missing.add(what + ": " + e.getMessage());
            return OptionalLong.empty();
        }
    }

    private long throttledNs() throws IOException {
        final Path file = groupDirectory().resolve("cpu.stat");
        for (final String line : Files.readAllLines(file)) {
            final String[] field = line.split(" ");
            if (field[0].equals("throttled_usec")) {
                return Long.parseLong(field[1]) * NS_PER_US;
            }
            if (field[0].equals("throttled_time")) {
                return Long.parseLong(field[1]);
            }
        }
        throw new IOException(file + " counts no throttling: the CPU controller is not on for this control group");
    }

    /** A host may mount both versions; the CPU controller is then in the first, if it is mounted there. */
    private Path groupDirectory() throws IOException {
        final List<String> mounts = Files.readAllLines(root.resolve("proc/self/mountinfo"));
        final List<String> groups = Files.readAllLines(root.resolve("proc/self/cgroup"));
        for (final boolean first : new boolean[] {true, false}) {
            for (final String mount : mounts) {
                final String[] half = mount.split(" - ", 2);
                final String[] place = half[0].split(" ");
                final String[] kind = half[half.length - 1].split(" ");
                final boolean fits = first
                    ? kind[0].equals("cgroup") && List.of(kind[2].split(",")).contains("cpu")
                    : kind[0].equals("cgroup2");
                if (fits) {
                    return directory(place[4], place[3], group(groups, first));
                }
            }
        }
        throw new IOException("no control groups are mounted");
    }

    /** {@code /proc/self/cgroup}: number, controllers, path, separated by colons; version 2 has number 0. */
    private static String group(final List<String> groups, final boolean first) throws IOException {
        for (final String line : groups) {
            final String[] field = line.split(":", 3);
            if (first ? List.of(field[1].split(",")).contains("cpu") : field[0].equals("0")) {
                return field[2];
            }
        }
        throw new IOException("/proc/self/cgroup does not name the control group of the CPU");
    }

    /** In a container the mount may show the hierarchy from some group on, whose path is then a prefix. */
    private Path directory(final String mountPoint, final String mountedFrom, final String group) {
        final boolean within = !mountedFrom.equals("/") && group.startsWith(mountedFrom);
        final String rest = within ? group.substring(mountedFrom.length()) : group;
        final Path mounted = root.resolve(mountPoint.substring(1));
        final Path own = mounted.resolve(rest.replaceFirst("^/+", "")).normalize();
        return own.startsWith(mounted) && Files.isDirectory(own) ? own : mounted;
    }

    private Map<Long, Long> runQueueByThread(final List<String> missing) {
        final Map<Long, Long> byThread = new HashMap<>();
        try (DirectoryStream<Path> tasks = Files.newDirectoryStream(root.resolve("proc/self/task"))) {
            for (final Path task : tasks) {
                readTask(task, byThread);
            }
        } catch (final IOException | RuntimeException e) {
            missing.add("run queue: " + e.getMessage());
        }
        if (byThread.isEmpty()) {
            missing.add("run queue: the kernel keeps no schedstat (CONFIG_SCHED_INFO is off)");
        }
        return Map.copyOf(byThread);
    }

    /** {@code schedstat}: time on a CPU, time waiting for one, turns. A thread that has just ended is ignored. */
    private static void readTask(final Path task, final Map<Long, Long> byThread) {
        try {
            final String[] field = Files.readString(task.resolve("schedstat")).trim().split(" ");
            byThread.put(Long.parseLong(task.getFileName().toString()), Long.parseLong(field[1]));
        } catch (final IOException ended) {
            byThread.remove(Long.parseLong(task.getFileName().toString()));
        }
    }

    private long stolenNs() throws IOException {
        final Path file = root.resolve("proc/stat");
        try (Stream<String> lines = Files.lines(file)) {
            final String[] field = lines.findFirst().orElse("").split(" +");
            if (field.length <= STEAL_FIELD || !field[0].equals("cpu")) {
                throw new IOException(file + " does not begin with the sum of the CPUs");
            }
            return Long.parseLong(field[STEAL_FIELD]) * NS_PER_TICK;
        }
    }
}
