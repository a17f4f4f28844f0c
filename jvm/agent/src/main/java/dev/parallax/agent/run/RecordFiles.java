package dev.parallax.agent.run;

import dev.parallax.agent.report.Series;
import java.io.File;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Set;

/** Distinguishes the files of a record in a folder from those that were there before. Create it before the record begins. */
final class RecordFiles {
    private static final Set<String> NAMES = Set.of("run.json", "run.json.unfinished", "series.ndjson", "events.ndjson");

    private final File folder;
    private final boolean wasThere;
    private final Set<String> before;

    RecordFiles(Path folder) {
        this.folder = folder.toFile();
        wasThere = this.folder.exists();
        before = names();
    }

    /** Deletes the record's files once it is finished. Other files stay, and so does a folder that contains any. */
    void delete() {
        for (String name : names()) {
            if (!before.contains(name) && isOfARecord(name)) {
                new File(folder, name).delete();
            }
        }
        if (!wasThere) {
            folder.delete();
        }
    }

    private static boolean isOfARecord(String name) {
        return NAMES.contains(name)
                || name.endsWith(".hlog") && Arrays.stream(Series.values()).anyMatch(series -> name.startsWith(series.title()));
    }

    /** Empty if the folder does not exist or cannot be read. */
    private Set<String> names() {
        String[] all = folder.list();
        return all == null ? Set.of() : Set.of(all);
    }
}
