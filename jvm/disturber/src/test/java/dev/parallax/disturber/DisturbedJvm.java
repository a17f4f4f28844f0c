package dev.parallax.disturber;

import com.sun.management.ThreadMXBean;
import dev.parallax.pauses.PauseClock;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.List;
import javax.management.MBeanServer;
import javax.management.ObjectName;

/**
 * A JVM that is idle for a while and then disturbed. Arguments: mode, MB per second, share in percent, length in ms.
 * Prints what happened, from other sources than the disturber's if there are any.
 */
public final class DisturbedJvm {
    private static final long SETTLE_MS = 50;
    private static final long IDLE_MS = 1_000;
    /** What the chain consists of, next to arrays of bytes. */
    private static final String LINKS = "dev.parallax.disturber.Chain$Link";

    private DisturbedJvm() {}

    public static void main(String[] arguments) throws Exception {
        Mode mode = Mode.valueOf(arguments[0]);
        long rate = Long.parseLong(arguments[1]) << 20;
        double share = Double.parseDouble(arguments[2]) / 100;
        Duration length = Duration.ofMillis(Long.parseLong(arguments[3]));
        long livedBefore = liveBytes();
        PauseClock clock = PauseClock.open();
        long max = Runtime.getRuntime().maxMemory();
        long before = events(mode, clock);
        Thread.sleep(IDLE_MS);
        long idle = events(mode, clock) - before;
        Disturbance disturbance = Disturbance.start(
                new Plan(mode, rate, share, Duration.ZERO, length), clock, (atNs, text) -> System.err.println(text));
        long[] half = allocatedAndLive(disturbance, length.toMillis(), livedBefore);
        if (!disturbance.await(60_000)) {
            throw new IllegalStateException("does not end");
        }
        Thread.sleep(SETTLE_MS);
        Disturbance.Outcome outcome = disturbance.outcome();
        print("idle", idle * length.toMillis() / IDLE_MS);
        print("chosen", outcome.effect().chosen());
        print("rate", (long) outcome.bytesPerSecond());
        print("allocated", half[0]);
        print("held", half[1]);
        print("left", liveBytes() - livedBefore);
        print("max", max);
    }

    /** At least everything that the mode is for, from sources that are always available. */
    private static long events(Mode mode, PauseClock clock) {
        return switch (mode) {
            case METASPACE -> ManagementFactory.getClassLoadingMXBean().getUnloadedClassCount();
            case TIME_TO_SAFEPOINT -> clock.read().syncNs() / 1_000_000;
            default -> ManagementFactory.getGarbageCollectorMXBeans().stream()
                    .mapToLong(collector -> collector.getCollectionCount())
                    .sum();
        };
    }

    private static void print(String name, long value) {
        System.out.println(name + "=" + value);
    }

    /**
     * During the disturbance: what its thread allocates per second, by the JVM's account, and how much of it is
     * alive.
     */
    private static long[] allocatedAndLive(Disturbance disturbance, long lengthMs, long livedBefore) throws Exception {
        ThreadMXBean threads = ManagementFactory.getPlatformMXBean(ThreadMXBean.class);
        // It begins when the flight recorder has started.
        while (disturbance.outcome().bytes() == 0 && !disturbance.await(1)) {
            Thread.onSpinWait();
        }
        Thread.sleep(lengthMs / 6);
        long id = disturber();
        if (id < 0) {
            return new long[2];
        }
        long firstNs = System.nanoTime();
        long first = threads.getThreadAllocatedBytes(id);
        Thread.sleep(lengthMs / 3);
        long secondNs = System.nanoTime();
        long second = threads.getThreadAllocatedBytes(id);
        long live = liveBytes() - livedBefore;
        return new long[] {(long) ((second - first) * 1e9 / (secondNs - firstNs)), live};
    }

    private static long disturber() {
        for (Thread thread : Thread.getAllStackTraces().keySet()) {
            if (thread.getName().equals("parallax-disturber")) {
                return thread.getId();
            }
        }
        return -1;
    }

    /** The JVM's own count, after a full collection that it makes for it. */
    private static long liveBytes() throws Exception {
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        String histogram = (String) server.invoke(
                new ObjectName("com.sun.management:type=DiagnosticCommand"),
                "gcClassHistogram",
                new Object[] {new String[0]},
                new String[] {String[].class.getName()});
        long bytes = 0;
        for (String line : histogram.lines().toList()) {
            List<String> words = List.of(line.trim().split("\\s+"));
            if (words.size() >= 4 && (words.get(3).equals("[B") || words.get(3).equals(LINKS))) {
                bytes += Long.parseLong(words.get(2));
            }
        }
        return bytes;
    }
}
