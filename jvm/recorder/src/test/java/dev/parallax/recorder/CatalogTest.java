package dev.parallax.recorder;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class CatalogTest {
    private static final Description DURATION = Description.of("http.server.request.duration", "How long.");
    private static final Description BYTES = Description.of("http.server.response.body.size", "By", "How large.");
    private static final Description COUNT = Description.of("messages", "{message}", "How many.");

    private final Catalog catalog = new Catalog();

    @Test
    void aNameAndItsBoundLabelsAreOneSeriesForWhoeverAsks() {
        Recorder bound = catalog.durations(DURATION.with("port", "80").with("address", "a"));
        assertSame(bound, catalog.durations(DURATION.with(Map.of("address", "a", "port", "80"))));
        LabelledRecorder labelled = catalog.durations(DURATION.with("port", "81"), 10, "method");
        assertSame(labelled, catalog.durations(DURATION.with("port", "81"), 20, "method"));
        Counter counter = catalog.counter(COUNT);
        assertSame(counter, catalog.counter(COUNT));
        bound.record(2_000);
        labelled.row("GET").record(3_000);
        counter.add(3);
        counter.add(1.5);
        counter.add(-7);
        counter.add(Double.NaN);
        counter.add(Double.POSITIVE_INFINITY);
        assertEquals(2, points("http.server.request.duration").size());
        assertEquals(Map.of("port", "81", "method", "GET"), points("http.server.request.duration").get(1).labels());
        assertEquals(List.of(new Family.Value(Map.of(), 4.5)), points("messages"));
    }

    @Test
    void aNameHasOneKindAndOneUnitAndTheRefusalSaysWhich() {
        catalog.durations(DURATION);
        String message = refusal(() -> catalog.counter(DURATION.with("a", "b")));
        assertEquals(
                "http.server.request.duration is already DURATIONS in \"s\", not COUNTER in \"s\"; use another name",
                message);
        catalog.counter(COUNT);
        assertTrue(refusal(() -> catalog.counter(Description.of("messages", "By", ""))).contains("{message}"));
        assertTrue(refusal(() -> catalog.durations(BYTES)).contains("durations need \"s\""));
        assertTrue(refusal(() -> catalog.durations(DURATION, 10, "method")).contains("has the event labels [], not [method]"));
        assertTrue(refusal(() -> catalog.counters(COUNT.with("a", ""), 10, "a")).contains("already bound"));
        assertTrue(refusal(() -> catalog.counters(COUNT.with("b", ""), 10)).contains("at least one is required"));
        assertEquals(2, catalog.read().size());
        assertEquals(1, points("messages").size(), "what was refused leaves nothing behind");
    }

    @Test
    void howManyDurationsThereAreIsACounterOfItsOwnName() {
        Recorder bound = catalog.durations(DURATION);
        catalog.counter(COUNT, bound);
        Registration again = catalog.counter(COUNT, bound);
        bound.record(2_000);
        bound.record(-1);
        assertEquals(List.of(new Family.Value(Map.of(), 2)), points("messages"));
        again.close();
        assertEquals(1, catalog.read().size());
    }

    @Test
    void whatIsNullCountsAsEmpty() {
        catalog.counter(new Description("messages", null, null, new HashMap<>()).with("queue", null));
        assertEquals(Map.of("queue", ""), points("messages").get(0).labels());
        assertEquals("", catalog.read().get(0).unit());
    }

    @Test
    void whatIsBeyondTheLimitIsOneRowAndShownOnlyWhenThereIsSome() {
        Rows<Counter> rows = catalog.counters(COUNT, 1, "queue", "kind");
        rows.row("q", "k").increment();
        assertEquals(List.of(new Family.Value(Map.of("queue", "q", "kind", "k"), 1)), points("messages"));
        rows.row("r", "k").increment();
        assertEquals(new Family.Value(Map.of("queue", "_OTHER", "kind", "_OTHER"), 1), points("messages").get(1));
    }

    @Test
    void whatSeveralShowUnderTheSameLabelsIsAddedUpUntilTheyAreClosed() {
        Recorder mine = new Recorder();
        Recorder yours = new Recorder();
        mine.record(1_000);
        yours.record(3_000);
        Registration first = catalog.durations(DURATION, mine);
        catalog.durations(DURATION, mine);
        catalog.durations(DURATION, yours);
        Durations both = (Durations) ((Family.Histogram) points(DURATION.name()).get(0)).distribution();
        assertEquals(2, both.count());
        assertEquals(4_000, both.sumNs());
        first.close();
        first.close();
        assertEquals(2, count(DURATION.name()), "what was told stays told with what the other tells");
        assertTrue(catalog.remove(DURATION.name(), Map.of()));
        assertFalse(catalog.remove(DURATION.name(), Map.of()));
        assertTrue(catalog.read().isEmpty());
        catalog.counter(DURATION);
    }

    /** If this fails, a pool that is made again begins its series again, and what it reported before is lost. */
    @Test
    void whatIsShownBeforeTheOneBeforeItIsClosedGoesOnFromIt() {
        Description failed = Description.of("failed", "How long.");
        Description share = Description.of("share", "1", "");
        Registration before = () -> {};
        for (int n = 1; n <= 3; n++) {
            Recorder recorder = new Recorder();
            LabelledRecorder labelled = new LabelledRecorder(1, "kind");
            AmountRecorder sizes = new AmountRecorder();
            int pending = n;
            List<Registration> shown = List.of(
                    catalog.durations(DURATION, recorder),
                    catalog.durations(failed, labelled),
                    catalog.amounts(BYTES, sizes),
                    catalog.counter(COUNT, () -> 5 * pending),
                    catalog.upDownCounter(Description.of("pending", "", ""), () -> pending),
                    catalog.gauge(share, () -> pending));
            recorder.record(1_000);
            labelled.row("kind" + n).record(2_000);
            labelled.row("other").record(3_000);
            sizes.record(4L);
            before.close();
            // It is closed, and not shown.
            before = () -> {
                shown.forEach(Registration::close);
                recorder.record(9_000);
            };
            assertEquals(n, count(DURATION.name()));
            assertEquals(2 * n, count("failed"));
            assertEquals(n + 1, points("failed").size(), "one for each kind, and one for what is beyond");
            assertEquals(n, count(BYTES.name()));
            assertEquals(List.of(new Family.Value(Map.of(), 5 * n * (n + 1) / 2)), points("messages"));
            assertEquals(List.of(new Family.Value(Map.of(), n)), points("pending"));
            assertEquals(List.of(new Family.Value(Map.of(), n)), points("share"));
        }
        before.close();
        assertTrue(catalog.read().isEmpty(), "with the last one all is forgotten");
    }

    /** If this fails, a service that makes its pools again each minute has no memory left in the end. */
    @Test
    void whatIsGoneTakesNoMoreTheOftenerItGoes() throws InterruptedException {
        catalog.durations(DURATION.with("pool", "p"), new LabelledRecorder(1, "route"));
        WeakReference<LabelledRecorder> first = null;
        for (int n = 0; n < 4; n++) {
            LabelledRecorder labelled = new LabelledRecorder(ClosedTotals.ROWS_MAX, "route");
            for (int row = 0; row < ClosedTotals.ROWS_MAX / 2; row++) {
                labelled.row(n + "/" + row).record(1_000);
            }
            first = first == null ? new WeakReference<>(labelled) : first;
            catalog.durations(DURATION.with("pool", "p"), labelled).close();
        }
        assertEquals(2 * ClosedTotals.ROWS_MAX, count(DURATION.name()));
        List<Family.Point> points = points(DURATION.name());
        assertEquals(ClosedTotals.ROWS_MAX + 1, points.size());
        assertEquals(Map.of("pool", "p", "route", "_OTHER"), points.get(ClosedTotals.ROWS_MAX).labels());
        for (int n = 0; n < 100 && !first.refersTo(null); n++) {
            System.gc();
            Thread.sleep(1);
        }
        assertTrue(first.refersTo(null));
    }

    /** If this fails, who reads next takes less for a new begin, and counts all once more. */
    @Test
    void whatIsReadWhileOneIsClosedStaysReported() {
        catalog.counter(COUNT).add(100);
        double[] count = {10};
        double[] reported = {0};
        Registration shown = catalog.counter(COUNT, () -> {
            double now = count[0];
            if (now == 10) {
                count[0] = 11;
                reported[0] = messages();
            }
            return now;
        });
        shown.close();
        assertEquals(111, reported[0]);
        assertEquals(111, messages());
    }

    /** As above, by a reader that had begun before and is slow. */
    @Test
    void whatIsClosedWhileItIsReadReportsNoMoreThanWhenItWasClosed() {
        catalog.counter(COUNT).add(100);
        double[] count = {10};
        Registration[] shown = {null};
        shown[0] = catalog.counter(COUNT, () -> {
            if (shown[0] != null) {
                Registration closed = shown[0];
                shown[0] = null;
                closed.close();
                count[0] = 11;
            }
            return count[0];
        });
        assertEquals(110, messages());
        assertEquals(110, messages());
    }

    private double messages() {
        return ((Family.Value) points("messages").get(0)).value();
    }

    /** Absent is not zero, and a gauge that throws does not affect the others. */
    @Test
    void aGaugeThatCannotReportIsAbsent() {
        Description pool = Description.of("pool.share", "1", "");
        catalog.gauge(pool.with("pool", "a"), () -> Double.NaN);
        catalog.gauge(pool.with("pool", "b"), () -> {
            throw new IllegalStateException("closed");
        });
        catalog.gauge(pool.with("pool", "c"), () -> 0.5);
        catalog.upDownCounter(COUNT, () -> 2);
        catalog.upDownCounter(COUNT).add(3);
        // What cannot be added up is not: the first is reported.
        catalog.gauge(pool.with("pool", "c"), () -> 0.25);
        assertEquals(List.of(new Family.Value(Map.of("pool", "c"), 0.5)), points("pool.share"));
        assertEquals(List.of(new Family.Value(Map.of(), 5)), points("messages"));
    }

    /** If this fails, a server shows minus one request in progress. */
    @Test
    void requestsInProgressAreNeverLessThanThereAreAndExactInTheEnd() throws InterruptedException {
        UpDownCounter active = catalog.upDownCounter(COUNT);
        active.increment();
        List<Thread> threads = new ArrayList<>();
        for (int n = 0; n < 3; n++) {
            Thread thread = new Thread(() -> {
                for (int i = 0; i < 500_000; i++) {
                    active.increment();
                    active.decrement();
                }
            });
            threads.add(thread);
            thread.start();
        }
        while (threads.stream().anyMatch(Thread::isAlive)) {
            double now = ((Family.Value) points("messages").get(0)).value();
            assertTrue(now >= 1, () -> "" + now);
        }
        assertEquals(1, active.current());
    }

    @Test
    void everyReadingIsOneThatWasAndTheLastHasAll() throws InterruptedException {
        LabelledRecorder durations = catalog.durations(DURATION, 100, "a", "b", "c", "d");
        Rows<Counter> counters = catalog.counters(COUNT, 100, "a");
        Rows<AmountRecorder> amounts = catalog.amounts(BYTES, 5, "a");
        int records = 300_000;
        List<Thread> threads = new ArrayList<>();
        for (int n = 0; n < 3; n++) {
            Thread thread = new Thread(() -> {
                String[] values = {"x", "y", "z", null};
                for (int i = 0; i < records; i++) {
                    values[3] = Integer.toString(i % 10);
                    durations.rowOf(values).record(1_234);
                    counters.row(values[3]).increment();
                    amounts.row(values[3]).record(10_000L);
                }
            });
            threads.add(thread);
            thread.start();
        }
        double last = 0;
        while (threads.stream().anyMatch(Thread::isAlive)) {
            double sum = 0;
            for (Family family : catalog.read()) {
                for (Family.Point point : family.points()) {
                    if (point instanceof Family.Value value) {
                        sum += value.value();
                    } else if (((Family.Histogram) point).distribution() instanceof Durations spread) {
                        assertEquals(spread.count() * 1_234, spread.sumNs());
                    } else {
                        Distribution spread = ((Family.Histogram) point).distribution();
                        assertEquals(spread.count() * 10_000.0, spread.sum());
                    }
                }
            }
            assertTrue(sum >= last);
            last = sum;
        }
        assertEquals(3 * records, count(DURATION.name()));
        assertEquals(3 * records, count(BYTES.name()));
        assertEquals(6, points(BYTES.name()).size());
        assertEquals(3.0 * records, points("messages").stream().mapToDouble(p -> ((Family.Value) p).value()).sum());
    }

    private long count(String name) {
        return points(name).stream().mapToLong(p -> ((Family.Histogram) p).distribution().count()).sum();
    }

    private List<Family.Point> points(String name) {
        return catalog.read().stream().filter(f -> f.name().equals(name)).findAny().orElseThrow().points();
    }

    private static String refusal(Runnable refused) {
        return assertThrows(IllegalArgumentException.class, refused::run).getMessage();
    }
}
