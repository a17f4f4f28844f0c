package dev.parallax.recorder;

import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SeekableByteChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The files of a record under way. What is added in one step stays as a whole or is taken back as a whole: where that fails
 * too, as where there is no memory for anything, before anything else is written.
 */
final class Commits implements Closeable {
    private final Path folder;
    private final Map<String, Growing> files = new HashMap<>();

    /** Those that may hold a part of what is not committed, in the order in which it was written. */
    private final List<Growing> torn = new ArrayList<>();

    /** What is added, and what commits it at the end. */
    @FunctionalInterface
    interface Step {
        void write() throws IOException;
    }

    private static final class Growing {
        private final Path path;
        private SeekableByteChannel channel;
        private long length;
        private long committed;

        Growing(Path path) {
            this.path = path;
        }

        void open(OpenOption how) throws IOException {
            SeekableByteChannel opened =
                    Files.newByteChannel(path, how, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS);
            if (opened.size() > 0) {
                opened.close();
                throw new FileAlreadyExistsException(path.toString());
            }
            channel = opened;
        }

        void add(ByteBuffer bytes) throws IOException {
            // Taken as written before it is: where it fails, the file differs from before and is cut.
            length += bytes.remaining();
            while (bytes.hasRemaining()) {
                channel.write(bytes);
            }
        }

        void commit() {
            committed = length;
        }

        void takeBack() throws IOException {
            if (length != committed) {
                channel.truncate(committed);
                length = committed;
            }
        }
    }

    Commits(Path folder) {
        this.folder = folder;
    }

    /** Of all who make this file in this folder, one can. */
    void claim(String name) throws IOException {
        file(name).open(StandardOpenOption.CREATE_NEW);
    }

    /** All that the step adds, or nothing. */
    void whole(Step step) throws IOException {
        takeBack();
        try {
            step.write();
        } catch (IOException | RuntimeException | Error e) {
            tryToTakeBack();
            throw e;
        }
        // It is written, and who were told otherwise would write it again: nothing here wants memory.
        for (int n = 0; n < torn.size(); n++) {
            torn.get(n).commit();
        }
        torn.clear();
    }

    /** For a step: adds to a file. */
    void add(String name, String text) throws IOException {
        Growing file = file(name);
        if (file.channel == null) {
            // One that is there and empty was made when there was no memory left to hear of it.
            file.open(StandardOpenOption.CREATE);
        }
        ByteBuffer bytes = StandardCharsets.UTF_8.encode(text);
        torn.add(file);
        file.add(bytes);
    }

    /** In bytes, of what is there. */
    long length(String name) {
        return file(name).length;
    }

    /** Whatever was opened can be found again: its place is taken before. */
    private Growing file(String name) {
        Growing file = files.get(name);
        if (file == null) {
            file = new Growing(folder.resolve(name));
            files.put(name, file);
        }
        return file;
    }

    /** Cuts off what is not committed, the last first: what commits the rest goes before the rest. */
    void takeBack() throws IOException {
        while (!torn.isEmpty()) {
            int last = torn.size() - 1;
            torn.get(last).takeBack();
            torn.remove(last);
        }
    }

    private void tryToTakeBack() {
        try {
            takeBack();
        } catch (IOException | RuntimeException | Error e) {
            // The failure worth telling is the first one; and before the next step this is tried again.
        }
    }

    @Override
    public void close() throws IOException {
        for (Growing file : files.values()) {
            if (file.channel != null) {
                file.channel.close();
            }
        }
    }
}
