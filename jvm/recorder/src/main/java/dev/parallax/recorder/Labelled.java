package dev.parallax.recorder;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;

/**
 * A {@link Recorder} for each combination of labels, up to a limit; what comes beyond is counted in {@link #other()}.
 *
 * <p>Labels that are known from the start are bound once: keep the recorder that {@link #row(String)} returns. Those that
 * are known only after the event, as a status or a route, are looked up each time: no lock, no allocation, and a row is
 * never given up nor mistaken for another's.
 *
 * <p>Cost: a few nanoseconds for a look-up of labels that were seen before, or of any beyond the limit. The first one of
 * a row takes a lock.
 */
public final class Labelled {
    /** Open addressing, at most a quarter full; replaced as a whole. */
    private volatile Place[] table = new Place[8];

    /** No row is added from here on. */
    private volatile boolean isFull;

    private final List<String> names;
    private final int limit;
    private final Recorder other = new Recorder();
    private final List<Row> rows = new ArrayList<>();

    /**
     * One combination of labels.
     *
     * @param values in the order of the names; empty where the event had none
     * @param recorder its durations
     */
    public record Row(List<String> values, Recorder recorder) {}

    /**
     * Without a row yet.
     *
     * @param limit how many rows there may be; memory is for all threads of all rows
     * @param names of the labels: one, two or three
     */
    public Labelled(int limit, String... names) {
        if (names.length < 1 || names.length > 3) {
            throw new IllegalArgumentException("labels: " + names.length + "; give one, two or three");
        }
        this.limit = limit;
        this.names = List.of(names);
    }

    /**
     * The recorder of these labels.
     *
     * @param a the value of the one label; null counts as empty
     * @return its own, or {@link #other()} where there are as many rows as may be
     */
    public Recorder row(String a) {
        return find(a, null, null);
    }

    /**
     * The recorder of these labels.
     *
     * @param a the value of the first label; null counts as empty
     * @param b that of the second
     * @return its own, or {@link #other()} where there are as many rows as may be
     */
    public Recorder row(String a, String b) {
        return find(a, b, null);
    }

    /**
     * The recorder of these labels.
     *
     * @param a the value of the first label; null counts as empty
     * @param b that of the second
     * @param c that of the third
     * @return its own, or {@link #other()} where there are as many rows as may be
     */
    public Recorder row(String a, String b, String c) {
        return find(a, b, c);
    }

    /**
     * The labels' names.
     *
     * @return in order
     */
    public List<String> names() {
        return names;
    }

    /**
     * What came when there was no row left.
     *
     * @return always the same
     */
    public Recorder other() {
        return other;
    }

    /**
     * The rows so far.
     *
     * @return a copy, in the order in which they came
     */
    public List<Row> rows() {
        synchronized (rows) {
            return List.copyOf(rows);
        }
    }

    private Recorder find(String a, String b, String c) {
        // Read first: a table that is read after it was said to be full has all rows.
        boolean wasFull = isFull;
        Place[] table = this.table;
        Place place = table[indexOf(table, a, b, c)];
        return place != null ? place.row.recorder : wasFull ? other : add(a, b, c);
    }

    /** Where the row stands, or the free place where it would. */
    private static int indexOf(Place[] table, String a, String b, String c) {
        int mask = table.length - 1;
        int hash = (hash(a) * 31 + hash(b)) * 31 + hash(c);
        int at = (hash ^ hash >>> 16) & mask;
        while (table[at] != null && !table[at].is(a, b, c)) {
            at = (at + 1) & mask;
        }
        return at;
    }

    private static int hash(String value) {
        return value == null ? 0 : value.hashCode();
    }

    private Recorder add(String a, String b, String c) {
        synchronized (rows) {
            Place known = table[indexOf(table, a, b, c)];
            if (known != null) {
                return known.row.recorder;
            }
            if (rows.size() >= limit) {
                isFull = true;
                return other;
            }
            List<String> values = Stream.of(text(a), text(b), text(c)).limit(names.size()).toList();
            Place added = new Place(text(a), text(b), text(c), new Row(values, new Recorder()));
            Place[] wider = new Place[Math.max(8, Integer.highestOneBit(8 * (rows.size() + 1)))];
            for (Place place : table) {
                if (place != null) {
                    wider[indexOf(wider, place.a, place.b, place.c)] = place;
                }
            }
            wider[indexOf(wider, a, b, c)] = added;
            rows.add(added.row);
            table = wider;
            return added.row.recorder;
        }
    }

    private static String text(String value) {
        return Objects.requireNonNullElse(value, "");
    }

    /** A row with its labels where comparing finds them soonest. */
    private record Place(String a, String b, String c, Row row) {
        boolean is(String a, String b, String c) {
            return same(a, this.a) && same(b, this.b) && same(c, this.c);
        }

        private static boolean same(String value, String known) {
            return value == known || known.equals(text(value));
        }
    }
}
