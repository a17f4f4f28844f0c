package dev.parallax.recorder;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

class RowsTest {
    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    @Test
    void sevenLabelsTellRowsApartByEachOfThem() {
        Rows<Counter> rows = new Rows<>(100, Counter::new, "a", "b", "c", "d", "e", "f", "g");
        String[] values = {"1", "2", "3", "4", "5", "6", "7"};
        Counter first = rows.rowOf(values);
        for (int n = 0; n < values.length; n++) {
            String before = values[n];
            values[n] = "x";
            Counter another = rows.rowOf(values);
            assertNotSame(first, another);
            // The array belongs to the caller: a row does not change with it.
            assertSame(another, rows.rowOf(values.clone()));
            values[n] = before;
        }
        assertSame(first, rows.rowOf(new String[] {new String("1"), "2", "3", "4", "5", "6", "7"}));
        assertEquals(8, rows.rows().size());
        assertEquals(List.of("1", "2", "3", "4", "5", "6", "7"), rows.rows().get(0).values());
    }

    @Test
    void allFormsOfALookUpFindTheSameRow() {
        Rows<Counter> rows = new Rows<>(100, Counter::new, "a", "b", "c", "d", "e");
        Counter two = rows.row("1", "2");
        assertSame(two, rows.row("1", "2", null));
        assertSame(two, rows.rowOf(new String[] {"1", "2"}));
        assertSame(two, rows.rowOf(new String[] {"1", "2", "", null, ""}));
        Counter last = rows.rowOf(new String[] {"1", "2", "", "", "5"});
        assertNotSame(two, last);
        assertSame(two, rows.row("1", "2", ""));
        assertEquals(2, rows.rows().size());
        Rows<Counter> one = new Rows<>(100, Counter::new, "a");
        assertSame(one.row("1"), one.row("1", "too many"));
        assertSame(one.row("1"), one.rowOf(new String[] {"1", "too many"}));
        assertEquals(1, one.rows().size());
    }

    @Test
    void whatIsBeyondTheLimitIsCountedTogether() {
        Rows<Counter> rows = new Rows<>(3, Counter::new, "a", "b", "c", "d");
        String[] values = new String[4];
        for (int i = 0; i < 10; i++) {
            values[3] = "" + i;
            rows.rowOf(values).increment();
        }
        assertEquals(3, rows.rows().size());
        assertEquals(7, rows.other().total());
    }

    /** Threads that find the same new labels at the same time count in one row. */
    @Test
    void rowsThatComeWhileOthersAreFoundAreFoundByAll() throws InterruptedException {
        int labels = 20_000;
        Rows<Counter> rows = new Rows<>(labels, Counter::new, "a", "b", "c", "d");
        List<Thread> threads = new ArrayList<>();
        for (int n = 0; n < 3; n++) {
            Thread thread = new Thread(() -> {
                String[] values = {"x", "y", "z", null};
                for (int i = 0; i < labels; i++) {
                    values[3] = Integer.toString(i);
                    rows.rowOf(values).increment();
                    values[3] = Integer.toString(i / 2);
                    rows.rowOf(values).increment();
                }
            });
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        assertEquals(labels, rows.rows().size());
        for (int i = 0; i < labels; i++) {
            String[] values = {"x", "y", "z", Integer.toString(i)};
            assertEquals(i < labels / 2 ? 9 : 3, rows.rowOf(values).total());
        }
        assertEquals(0, rows.other().total());
    }

    /**
     * If this fails, a look-up that finds a free place and another's row there a moment later counts in that one. The other
     * comes a little earlier each time, until it is first.
     */
    @Test
    void aRowThatComesWhereAnotherWouldStandIsNotMistakenForIt() throws InterruptedException {
        int rounds = 20_000;
        List<Rows<Counter>> all = new ArrayList<>();
        for (int round = 0; round < rounds; round++) {
            all.add(new Rows<>(2, Counter::new, "a"));
        }
        // Their hashes are the same, so they want the same place.
        AtomicInteger arrived = new AtomicInteger();
        Thread early = new Thread(() -> meet(all, arrived, 0, rows -> rows.row("AaAa").increment()));
        String[] values = {"AaBB"};
        Thread late = new Thread(() -> meet(all, arrived, 400, rows -> rows.rowOf(values).increment()));
        early.start();
        late.start();
        early.join();
        late.join();
        for (Rows<Counter> rows : all) {
            assertEquals(1, rows.row("AaAa").total());
            assertEquals(1, rows.row("AaBB").total());
        }
    }

    private static void meet(List<Rows<Counter>> all, AtomicInteger arrived, int delays, Consumer<Rows<Counter>> then) {
        int looks = 0;
        for (int round = 0; round < all.size(); round++) {
            arrived.incrementAndGet();
            // Both at the same time, or there is no race; but with a single CPU, the other thread must get it.
            while (arrived.get() < 2 * (round + 1)) {
                if (++looks % 1000 == 0) {
                    Thread.yield();
                }
            }
            for (int delay = delays == 0 ? 0 : round % delays; delay > 0; delay--) {
                Thread.onSpinWait();
            }
            then.accept(all.get(round));
        }
    }

    @Test
    void aLabelHasOneName() {
        assertThrows(IllegalArgumentException.class, () -> new Rows<>(3, Counter::new));
        assertThrows(IllegalArgumentException.class, () -> new Rows<>(3, Counter::new, "a", "b", "a"));
    }

    /** If this fails, each request of a server feeds its collector. */
    @Test
    void aLookUpOfWhatWasSeenBeforeTakesNoMemory() {
        Rows<Counter> rows = new Rows<>(4, Counter::new, "a", "b", "c", "d", "e");
        LabelledRecorder labelled = new LabelledRecorder(4, "a", "b", "c");
        String[] values = new String[5];
        String[] texts = {"GET", "POST", "/items", "/orders", "200", "500", "beyond", "the", "limit"};
        long least = Long.MAX_VALUE;
        // The best of several: compilation of what runs here counts for this thread as well.
        for (int round = 0; round < 20; round++) {
            long before = THREADS.getCurrentThreadAllocatedBytes();
            for (int i = 0; i < 10_000; i++) {
                values[0] = texts[i % texts.length];
                values[4] = texts[i % 3];
                rows.rowOf(values).increment();
                labelled.row(values[0], values[4], null).record(1_000 + i);
            }
            least = Math.min(least, THREADS.getCurrentThreadAllocatedBytes() - before);
        }
        assertEquals(0, least);
    }
}
