package dev.parallax.recorder;

import java.io.IOException;
import java.nio.file.Path;

/** A record that is full soon. */
public final class ShortFolder {
    private ShortFolder() {}

    public static RecordFolder make(Path path, JvmFacts facts, long bytesMax) throws IOException {
        return new RecordFolder(path, facts, bytesMax, bytesMax);
    }
}
