package dev.parallax.recorder;

import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SeekableByteChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The files of a record in progress. What one step adds is kept or removed as a whole. If removing it fails too, for
 * example for lack of memory, it is retried before anything else is written.
 */
final class AtomicFiles implements Closeable {
    private final Path folder;
    private final Map<String, OpenFile> files = new HashMap<>();

    /** Files that may hold uncommitted data, in the order of writing. */
    private final List<OpenFile> uncommitted = new ArrayList<>();

    /** Adds data; the caller commits it at the end. */
    @FunctionalInterface
    interface Step {
        void write() throws IOException;
    }

    private static final class OpenFile {
        private final Path path;
        private SeekableByteChannel channel;
        private long length;
        private long committed;

        OpenFile(Path path) {
            this.path = path;
        }

        void open(OpenOption how) throws IOException {
            SeekableByteChannel opened = RecordAccess.open(path, how);
            if (opened.size() > 0) {
                opened.close();
                throw new FileAlreadyExistsException(path.toString());
            }
            channel = opened;
        }

        void add(ByteBuffer bytes) throws IOException {
            // Counted before writing: if the write fails, the length differs from the committed one and the file is
            // truncated.
            length += bytes.remaining();
            while (bytes.hasRemaining()) {
                channel.write(bytes);
            }
        }

        void commit() {
            committed = length;
        }

        void rollBack() throws IOException {
            if (length != committed) {
                channel.truncate(committed);
                length = committed;
            }
        }
    }

    AtomicFiles(Path folder) {
        this.folder = folder;
    }

    /** Creates the file; of several that try to in this folder, one succeeds. */
    void claim(String name) throws IOException {
        file(name).open(StandardOpenOption.CREATE_NEW);
    }

    /** Writes everything the step adds, or nothing. */
    void atomically(Step step) throws IOException {
        rollBack();
        try {
            step.write();
        } catch (IOException | RuntimeException | Error e) {
            tryToRollBack();
            throw e;
        }
        // The data is written. A failure here would make the caller write it again, so this loop allocates nothing.
        for (int n = 0; n < uncommitted.size(); n++) {
            uncommitted.get(n).commit();
        }
        uncommitted.clear();
    }

    /** Adds text to a file; called by a step. */
    void add(String name, String text) throws IOException {
        OpenFile file = file(name);
        if (file.channel == null) {
            // An existing empty file was created when there was no memory to return it.
            file.open(StandardOpenOption.CREATE);
        }
        ByteBuffer bytes = StandardCharsets.UTF_8.encode(text);
        uncommitted.add(file);
        file.add(bytes);
    }

    /** Length in bytes. */
    long length(String name) {
        return file(name).length;
    }

    /** The entry is created before the file is opened, so that every open file can be found again. */
    private OpenFile file(String name) {
        OpenFile file = files.get(name);
        if (file == null) {
            file = new OpenFile(folder.resolve(name));
            files.put(name, file);
        }
        return file;
    }

    /** Truncates everything uncommitted, last file first: the line that commits the rest is removed before the rest. */
    void rollBack() throws IOException {
        while (!uncommitted.isEmpty()) {
            int last = uncommitted.size() - 1;
            uncommitted.get(last).rollBack();
            uncommitted.remove(last);
        }
    }

    private void tryToRollBack() {
        try {
            rollBack();
        } catch (IOException | RuntimeException | Error e) {
            // The first failure is the one to report; this is retried before the next step.
        }
    }

    @Override
    public void close() throws IOException {
        for (OpenFile file : files.values()) {
            if (file.channel != null) {
                file.channel.close();
            }
        }
    }
}
