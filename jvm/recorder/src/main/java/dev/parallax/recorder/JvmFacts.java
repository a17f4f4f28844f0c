package dev.parallax.recorder;

import java.io.IOException;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What a JVM record states about its JVM and host. A fact that cannot be read is left out.
 *
 * @param zero start of the record on the wall clock
 * @param zeroMonotonicNs the same instant by {@link System#nanoTime()}, which on Linux is the monotonic clock; used to
 *     join records of one host
 * @param javaVersion system property {@code java.version}
 * @param vm name of the virtual machine
 * @param collectors names of the garbage collectors
 * @param kernel kernel version; null if unknown
 * @param bootId the kernel's boot id; null if unknown
 * @param cpus number of CPUs this process may use
 * @param pid this process; null if it is not the pid in the host's namespace
 * @param monotonicOffsetNs offset of the clock of a time namespace from the kernel's own; 0 without one
 * @param series one line of description by the name of each log
 * @param options all options of anyone who writes the record, by name
 */
public record JvmFacts(
        Instant zero,
        long zeroMonotonicNs,
        String javaVersion,
        String vm,
        List<String> collectors,
        String kernel,
        String bootId,
        long cpus,
        Long pid,
        long monotonicOffsetNs,
        Map<String, String> series,
        Map<String, EffectiveOption> options) {

    /**
     * The effective value of an option; defaults are part of the record too.
     *
     * @param value as it would be written
     * @param isGiven whether it was given; otherwise it is the default
     */
    public record EffectiveOption(String value, boolean isGiven) {}

    /**
     * Facts about this JVM, for a writer without options.
     *
     * @param series one line of description by the name of each log
     * @return the facts
     */
    public static JvmFacts ofThisJvm(Map<String, String> series) {
        return ofThisJvm(series, Map.of());
    }

    /**
     * Facts about this JVM, with now as the start of the record.
     *
     * @param series one line of description by the name of each log
     * @param options all options of anyone who writes the record, by name
     * @return the facts
     */
    public static JvmFacts ofThisJvm(Map<String, String> series, Map<String, EffectiveOption> options) {
        List<String> collectors = new ArrayList<>();
        for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
            collectors.add(collector.getName());
        }
        return new JvmFacts(
                Instant.now(),
                System.nanoTime(),
                System.getProperty("java.version"),
                System.getProperty("java.vm.name"),
                collectors,
                System.getProperty("os.version"),
                readBootId(),
                Runtime.getRuntime().availableProcessors(),
                isFirstPidNamespace() ? ProcessHandle.current().pid() : null,
                readMonotonicOffset(),
                series,
                options);
    }

    private static String readBootId() {
        try {
            return Files.readString(Path.of("/proc/sys/kernel/random/boot_id")).trim();
        } catch (IOException e) {
            return null;
        }
    }

    /**
     * The kernel gives the initial pid namespace this number; in any other the host knows this process by another pid.
     */
    private static boolean isFirstPidNamespace() {
        try {
            return Files.readSymbolicLink(Path.of("/proc/self/ns/pid")).toString().equals("pid:[4026531836]");
        } catch (IOException e) {
            return false;
        }
    }

    private static long readMonotonicOffset() {
        try {
            for (String line : Files.readAllLines(Path.of("/proc/self/timens_offsets"))) {
                String[] words = line.trim().split("\\s+");
                if (words.length == 3 && words[0].equals("monotonic")) {
                    return Long.parseLong(words[1]) * 1_000_000_000 + Long.parseLong(words[2]);
                }
            }
        } catch (IOException | NumberFormatException e) {
            // A kernel without time namespaces has no offset.
        }
        return 0;
    }

    Map<String, Object> document(String state, Long elapsedNs) {
        Map<String, Object> document = new LinkedHashMap<>();
        document.put("schema_version", 1);
        document.put("kind", "jvm");
        document.put("state", state);
        document.put("parallax_version", "0.1.0");
        document.put("command", List.of());
        document.put("options", effective());
        Map<String, Object> time = new LinkedHashMap<>();
        time.put("started", zero.toString());
        time.put("started_monotonic_ns", zeroMonotonicNs);
        time.put("elapsed_ns", elapsedNs);
        time.put("window_ns", null);
        document.put("time", time);
        document.put("host", host());
        Map<String, Object> jvm = new LinkedHashMap<>();
        jvm.put("java_version", javaVersion);
        jvm.put("vm", vm);
        jvm.put("collectors", collectors);
        jvm.put("series", series);
        document.put("jvm", jvm);
        return document;
    }

    private Map<String, Object> effective() {
        Map<String, Object> effective = new LinkedHashMap<>();
        options.forEach((name, option) -> {
            Map<String, Object> one = new LinkedHashMap<>();
            one.put("value", option.value);
            one.put("source", option.isGiven ? "given" : "default");
            effective.put(name, one);
        });
        return effective;
    }

    private Map<String, Object> host() {
        Map<String, Object> host = new LinkedHashMap<>();
        host.put("cpus", cpus);
        if (kernel != null) {
            host.put("kernel", kernel);
        }
        if (bootId != null) {
            host.put("boot_id", bootId);
        }
        if (pid != null) {
            host.put("pid", pid);
        }
        if (monotonicOffsetNs != 0) {
            host.put("monotonic_offset_ns", monotonicOffsetNs);
        }
        return host;
    }
}
