package dev.parallax.agent.hooks;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.parallax.agent.report.Reader;
import dev.parallax.agent.report.Series;
import dev.parallax.agent.report.Source;
import dev.parallax.recorder.Durations;
import dev.parallax.recorder.Recorder;
import java.lang.ref.WeakReference;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class PerPoolTest {
    private final PerPool<Named> pools = new PerPool<>(pool -> named(((Pool) pool).name));

    private record Pool(String name) {}

    private record Named(String label, Recorder uses) implements Source {
        @Override
        public void read(Reader reader) {
            reader.durations(Series.DB_USE, label, uses.total());
        }
    }

    private Named named(String name) {
        return new Named(pools.label(name), new Recorder());
    }

    /** If this fails, a record counts the whole history of a pool again when another of its name is gone. */
    @Test
    void whatIsReportedOfANameNeverShrinks() throws InterruptedException {
        Pool live = new Pool("main");
        pools.of(live).uses.record(5);
        WeakReference<Pool> gone = useOne("main");
        assertEquals(Map.of("main", 2L), counts());
        long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (!gone.refersTo(null)) {
            assertTrue(System.nanoTime() - endNs < 0, "the pool is held");
            System.gc();
            Thread.sleep(1);
        }
        assertEquals(Map.of("main", 2L), counts());
        useOne("other");
        assertEquals(Map.of("main", 2L, "other", 1L), counts());
        // It is reported by what it kept before, and not as a new one.
        pools.of(live).uses.record(5);
        assertEquals(Map.of("main", 3L, "other", 1L), counts());
    }

    private WeakReference<Pool> useOne(String name) {
        Pool pool = new Pool(name);
        pools.of(pool).uses.record(7);
        return new WeakReference<>(pool);
    }

    /** If this fails, an application that names each of its pools again fills the memory, or loses what they did. */
    @Test
    void poolsOfTooManyNamesAreReportedAsOne() {
        for (int i = 0; i < PerPool.NAMES_MAX + 10; i++) {
            useOne("pool-" + i);
        }
        // A name that is known stays its own.
        useOne("pool-0");
        Map<String, Long> counts = counts();
        assertEquals(PerPool.NAMES_MAX + 1, counts.size());
        assertEquals(10, counts.get(Series.OTHER));
        assertEquals(2, counts.get("pool-0"));
    }

    private Map<String, Long> counts() {
        Map<String, Long> counts = new TreeMap<>();
        pools.read(new Reader() {
            @Override
            public void durations(Series series, String label, Durations total) {
                counts.merge(label, total.count(), Long::sum);
            }

            @Override
            public void number(Series series, String label, long value) {
                throw new AssertionError("there are no numbers");
            }
        });
        return counts;
    }
}
