package dev.parallax.pauses;

import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.OptionalLong;

/**
 * What the operating system withholds from one thread: like {@link Platform}, but light enough to be read a thousand
 * times per second. Files stay open and are read in place. Must be used by the thread that opens it, which must not be
 * interrupted. What cannot be read is absent; {@link Platform#read} returns the reason.
 */
public final class ThreadAccounts implements Closeable {
    private static final long NS_PER_US = 1_000;
    /** More than is needed of any of the three files. */
    private static final int READ_BYTES = 1_024;
    private static final int STEAL_FIELD = 8;
    private static final long NS_PER_TICK = 10_000_000;

    private final ByteBuffer buffer = ByteBuffer.allocateDirect(READ_BYTES);
    private final FileChannel schedule;
    private final FileChannel group;
    private final FileChannel host;

    private ThreadAccounts(final Path group) {
        this.schedule = open(Path.of("/proc/thread-self/schedstat"));
        this.group = group == null ? null : open(group);
        this.host = open(Path.of("/proc/stat"));
    }

    /** {@return the accounts of the calling thread, which must be a platform thread} */
    public static ThreadAccounts open() {
        return new ThreadAccounts(Platform.own().throttlingFile());
    }

    private static FileChannel open(final Path file) {
        try {
            return FileChannel.open(file, StandardOpenOption.READ);
        } catch (final IOException | RuntimeException absent) {
            return null;
        }
    }

    /** {@return how long this thread was ready and waited for a CPU, in nanoseconds; about a microsecond} */
    public OptionalLong runQueueNs() {
        return fill(schedule) ? number(1) : OptionalLong.empty();
    }

    /** {@return how long the control group was out of its quota, summed over CPUs, in nanoseconds; microseconds} */
    public OptionalLong throttledNs() {
        if (!fill(group)) {
            return OptionalLong.empty();
        }
        final OptionalLong ns = after("throttled_time ");
        if (ns.isPresent()) {
            return ns;
        }
        final OptionalLong us = after("throttled_usec ");
        return us.isPresent() ? OptionalLong.of(us.getAsLong() * NS_PER_US) : us;
    }

    /** {@return how long the hypervisor gave CPUs to others, summed over CPUs, in nanoseconds; tens of microseconds} */
    public OptionalLong stolenNs() {
        if (!fill(host)) {
            return OptionalLong.empty();
        }
        final OptionalLong ticks = number(STEAL_FIELD);
        return ticks.isPresent() ? OptionalLong.of(ticks.getAsLong() * NS_PER_TICK) : ticks;
    }

    private boolean fill(final FileChannel file) {
        if (file == null) {
            return false;
        }
        try {
            buffer.clear();
            final int length = file.read(buffer, 0);
            buffer.flip();
            return length > 0;
        } catch (final IOException gone) {
            return false;
        }
    }

    private OptionalLong number(final int field) {
        int at = 0;
        for (int passed = 0; passed < field; passed++) {
            while (at < buffer.limit() && buffer.get(at) != ' ') {
                at++;
            }
            while (at < buffer.limit() && buffer.get(at) == ' ') {
                at++;
            }
        }
        return digits(at);
    }

    private OptionalLong after(final String name) {
        for (int at = 0; at + name.length() < buffer.limit(); at++) {
            if ((at == 0 || buffer.get(at - 1) == '\n') && startsWith(at, name)) {
                return digits(at + name.length());
            }
        }
        return OptionalLong.empty();
    }

    private boolean startsWith(final int at, final String name) {
        for (int i = 0; i < name.length(); i++) {
            if (buffer.get(at + i) != name.charAt(i)) {
                return false;
            }
        }
        return true;
    }

    private OptionalLong digits(final int from) {
        long number = 0;
        int at = from;
        while (at < buffer.limit() && buffer.get(at) >= '0' && buffer.get(at) <= '9') {
            number = number * 10 + buffer.get(at) - '0';
            at++;
        }
        return at == from ? OptionalLong.empty() : OptionalLong.of(number);
    }

    @Override
    public void close() throws IOException {
        for (final FileChannel file : new FileChannel[] {schedule, group, host}) {
            if (file != null) {
                file.close();
            }
        }
    }
}
