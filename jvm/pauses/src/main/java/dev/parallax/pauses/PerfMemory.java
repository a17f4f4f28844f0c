package dev.parallax.pauses;

import java.io.IOException;
import java.lang.instrument.Instrumentation;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;

/** Finds the performance data of this JVM: in the file that it shares, or in its own memory. */
final class PerfMemory {
    private static final String PACKAGE = "jdk.internal.perf";
    /** The JVM uses 32 KiB unless {@code -XX:PerfDataMemorySize} says more; a larger file is not the JVM's. */
    private static final long LARGEST_FILE = 64 << 20;

    /** Earlier versions of {@code Perf.attach} have a mode parameter (JDK-8286441). */
    private static final int FIRST_WITHOUT_MODE = 19;

    private PerfMemory() {
    }

    /**
     * Maps the file in which this JVM keeps its counters.
     * It is the file that this process itself has mapped ({@code /proc/self/maps}), so a file of the same name that was
     * left by, or belongs to, another process with the same number is never mistaken for it.
     */
    static ByteBuffer mapFile() throws PauseClock.Unavailable {
        final MappedFile own = findOwn(Path.of("/proc/self/maps"));
        try (FileChannel file = FileChannel.open(own.path, Set.of(StandardOpenOption.READ, LinkOption.NOFOLLOW_LINKS))) {
            final Object inode = Files.getAttribute(own.path, "unix:ino", LinkOption.NOFOLLOW_LINKS);
            if (!Long.valueOf(own.inode).equals(inode)) {
                throw new PauseClock.Unavailable(own.path + " is no longer the file that this JVM writes");
            }
            if (file.size() > LARGEST_FILE) {
                throw new PauseClock.Unavailable(own.path + " is larger than performance data can be");
            }
            return file.map(MapMode.READ_ONLY, 0, file.size());
        } catch (final IOException | UnsupportedOperationException | SecurityException e) {
            throw new PauseClock.Unavailable("cannot map " + own.path + ": " + e);
        }
    }

    /**
     * One line of {@code maps}: address, rights, offset, device, inode, path, with blanks between.
     * A JVM writes only to its own file; a monitoring tool has mapped those of others, too, to read them.
     */
    static MappedFile findOwn(final Path maps) throws PauseClock.Unavailable {
        try (Stream<String> lines = Files.lines(maps)) {
            return lines
                .map(line -> line.split(" +", 6))
                .filter(field -> field.length == 6 && field[5].contains("/hsperfdata_") && field[1].equals("rw-s"))
                .findFirst()
                .map(field -> new MappedFile(Path.of(field[5]), Long.parseLong(field[4])))
                .orElseThrow(() -> new PauseClock.Unavailable(
                    "this JVM shares no file of counters (-XX:+PerfDisableSharedMem or -XX:-UsePerfData is set)"));
        } catch (final IOException | RuntimeException e) {
            throw new PauseClock.Unavailable("cannot read " + maps + ": " + e);
        }
    }

    record MappedFile(Path path, long inode) {
    }

    /**
     * Asks the JVM for its own performance data, which needs no file.
     * {@code jdk.internal.perf} is not a public interface, so it is used by reflection and may disappear one day.
     */
    static ByteBuffer attach(final Instrumentation instrumentation) throws PauseClock.Unavailable {
        try {
            final Class<?> perf = Class.forName(PACKAGE + ".Perf");
            if (instrumentation != null) {
                export(instrumentation, perf.getModule());
            }
            final Object instance = perf.getMethod("getPerf").invoke(null);
            return (ByteBuffer) attachSelf(perf, instance);
        } catch (final IllegalAccessException e) {
            throw new PauseClock.Unavailable(
                "needs --add-exports java.base/" + PACKAGE + "=ALL-UNNAMED, or the agent, which does the same");
        } catch (final InvocationTargetException e) {
            throw new PauseClock.Unavailable("this JVM keeps no counters (-XX:-UsePerfData): " + e.getCause());
        } catch (final ReflectiveOperationException | RuntimeException | LinkageError e) {
            throw new PauseClock.Unavailable("this JVM has no " + PACKAGE + " that is known here: " + e);
        }
    }

    private static Object attachSelf(final Class<?> perf, final Object instance) throws ReflectiveOperationException {
        final int self = 0;
        if (Runtime.version().feature() < FIRST_WITHOUT_MODE) {
            return perf.getMethod("attach", int.class, String.class).invoke(instance, self, "r");
        }
        return perf.getMethod("attach", int.class).invoke(instance, self);
    }

    private static void export(final Instrumentation instrumentation, final Module base) {
        final Module ours = PerfMemory.class.getModule();
        if (!base.isExported(PACKAGE, ours)) {
            instrumentation.redefineModule(
                base, Set.of(), Map.of(PACKAGE, Set.of(ours)), Map.of(), Set.of(), Map.of());
        }
    }
}
