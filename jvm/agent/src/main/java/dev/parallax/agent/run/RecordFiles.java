package dev.parallax.agent.run;

import dev.parallax.agent.report.Series;
import java.io.File;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Set;

/** What a record makes in its folder, told from what was there before. To be made before the record begins. */
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

    /** Once the record is finished. What anybody else has put there stays, and so does a folder that holds any of that. */
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

    /** None of a folder that is not there, or may not be read. */
    private Set<String> names() {
        String[] all = folder.list();
        return all == null ? Set.of() : Set.of(all);
    }
}
