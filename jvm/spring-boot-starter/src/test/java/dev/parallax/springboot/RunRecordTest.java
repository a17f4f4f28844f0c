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
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RunRecordTest {
    private static final Duration NEVER = Duration.ofHours(1);
    private static final int FULL = 500;

    @TempDir
    private Path folder;

    private final Catalog catalog = new Catalog();

    /** If this fails, a record of maximum length is never finished, or continues and cannot be read. */
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

    /**
     * Memory runs out twice each time: for the interval, and for the message. If this fails, the record's thread
     * ends there.
     */
    @Test
    void aRecordGoesOnWhereThereIsNoMemoryToSayThatThereIsNone() throws Exception {
        AtomicInteger refused = new AtomicInteger();
        AtomicBoolean isShort = new AtomicBoolean();
        Recorder recorder = catalog.durations(Description.of("one", "What it is of."));
        catalog.gauge(Description.of("gauge", "What is read with all others."), () -> {
            if (isShort.get()) {
                refused.incrementAndGet();
                throw new Unspeakable();
            }
            return 0;
        });
        RunRecord record = new RunRecord(catalog, folder, Duration.ofMillis(1));
        record.start();
        Path made = Seen.only(folder);
        isShort.set(true);
        Seen.until("refused again", () -> refused.get() >= 2);
        isShort.set(false);
        recorder.record(1_000);
        Seen.until("an interval with it", () -> made.resolve("one.hlog").toFile().length() > 0);
        isShort.set(true);
        Thread.currentThread().interrupt();
        record.stop();
        assertTrue(Thread.interrupted());
        assertEquals("finished", run(made).get("state").asText());
        assertEquals(1, Seen.count(made, "one"));
    }

    private static final class Unspeakable extends OutOfMemoryError {
        private static final long serialVersionUID = 1;

        @Override
        public String toString() {
            throw new OutOfMemoryError("planted");
        }
    }

    /** As `parallax report` takes them apart. */
    @Test
    void aSeriesIsReportedFromItsLabels() throws Exception {
        catalog.durations(Description.of("in-the-pool", "Waits,, of all, of any kind."), 5, "pool").row("a-b").record(5);
        RunRecord record = new RunRecord(catalog, folder, NEVER);
        record.start();
        record.stop();
        JsonNode series = run(Seen.only(folder)).at("/jvm/series");
        assertEquals("{\"in_the_pool-a-b\":\"Waits of all of any kind., of pool=a-b\"}", series.toString());
    }

    private static JsonNode run(Path record) throws Exception {
        return new ObjectMapper().readTree(record.resolve("run.json").toFile());
    }
}
