package dev.parallax.springboot;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.parallax.recorder.Catalog;
import dev.parallax.recorder.Description;
import dev.parallax.recorder.Recorder;
import dev.parallax.recorder.ShortFolder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RunRecordTest {
    private static final Duration NEVER = Duration.ofHours(1);
    private static final int FULL = 500;

    @TempDir
    private Path folder;

    private final Catalog catalog = new Catalog();

    /** If this fails, a record that is as long as can be read is never finished, or goes on and cannot be read. */
    @Test
    void aRecordThatIsFullIsFinishedAndStaysAsItIs() throws Exception {
        Recorder recorder = catalog.durations(Description.of("one", "What it is of."));
        RunRecord record =
                new RunRecord(catalog, folder, NEVER, (path, facts) -> ShortFolder.make(path, facts, FULL));
        record.start();
        Path made = Seen.only(folder);
        for (int n = 0; n < FULL && !run(made).get("state").asText().equals("finished"); n++) {
            recorder.record(1_000);
            record.write();
        }
        JsonNode finished = run(made);
        List<String> lines = Files.readAllLines(made.resolve("series.ndjson"));
        recorder.record(1_000);
        record.write();
        record.stop();
        assertEquals("finished", finished.get("state").asText());
        assertEquals(finished, run(made));
        assertEquals(lines, Files.readAllLines(made.resolve("series.ndjson")));
        assertTrue(Files.size(made.resolve("series.ndjson")) <= FULL);
        JsonNode last = new ObjectMapper().readTree(lines.get(lines.size() - 1));
        assertEquals(
                last.get("start_ns").asLong() + last.get("length_ns").asLong(), finished.at("/time/elapsed_ns").asLong());
        assertEquals(lines.size(), Seen.count(made, "one"));
    }

    private static JsonNode run(Path record) throws Exception {
        return new ObjectMapper().readTree(record.resolve("run.json").toFile());
    }
}
