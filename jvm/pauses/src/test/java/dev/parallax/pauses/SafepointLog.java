package dev.parallax.pauses;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The JVM's own log of its safepoints, {@code -Xlog:safepoint}, which is the truth of these tests. */
final class SafepointLog {
    static final String OPTION = "-Xlog:safepoint=info:file=%s:uptimenanos:filecount=0";

    private static final Pattern LINE = Pattern.compile(
        "Safepoint \"(\\w+)\".* Reaching safepoint: +(\\d+) ns,.* Total: +(\\d+) ns");

    /** One safepoint; the first of the JVM has number 1. */
    record Entry(String operation, long reachingNs, long totalNs) {
    }

    private final List<Entry> entries;

    private SafepointLog(final List<Entry> entries) {
        this.entries = entries;
    }

    static SafepointLog read(final Path file) throws IOException {
        final List<Entry> entries = new ArrayList<>();
        for (final String line : Files.readAllLines(file)) {
            final Matcher found = LINE.matcher(line);
            if (found.find()) {
                entries.add(new Entry(
                    found.group(1), Long.parseLong(found.group(2)), Long.parseLong(found.group(3))));
            }
        }
        return new SafepointLog(entries);
    }

    int size() {
        return entries.size();
    }

    /** The safepoints with numbers above {@code after} and up to {@code last}. */
    List<Entry> between(final long after, final long last) {
        return entries.subList((int) after, (int) Math.min(last, entries.size()));
    }
}
