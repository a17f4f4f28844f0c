package dev.parallax.recorder;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.function.Supplier;

/**
 * One {@code T} for each combination of labels that are known only after the event, as a status or a route, up to a limit;
 * what comes beyond goes to {@link #other()}.
 *
 * <p>A row is never given up nor mistaken for another's. Labels that are known from the start do not belong here: they are
 * those of a {@link Description}, or a row that is looked up once and kept.
 *
 * <p>Cost: a few nanoseconds for a look-up of labels that were seen before, or of any beyond the limit; no lock, no
 * allocation. The first one of a row takes a lock.
 *
 * @param <T> what records
 */
public final class Rows<T> {
    /** What a combination of labels can be told apart by without a loop; as many have fields of their own. */
    private static final int SPREAD = 3;

    /**
     * Open addressing, at most a quarter full; replaced as a whole when it would be more. Its places are written in order
     * under a lock and read without one: who does not see a new one takes the lock and finds it. All of a place is final,
     * so who sees one sees all of it (JLS 17.5).
     */
    private volatile Place<T>[] table = places(8);

    /** No row is added from here on. */
    private volatile boolean isFull;

    private final List<String> names;
    private final int limit;
    private final Supplier<T> maker;
    private final T other;
    private final List<Row<T>> rows = new ArrayList<>();

    /**
     * One combination of labels.
     *
     * @param values in the order of the names; empty where the event had none
     * @param series what it is counted in
     * @param <T> what records
     */
    public record Row<T>(List<String> values, T series) {}

    /**
     * Without a row yet.
     *
     * @param limit how many rows there may be; memory is for all threads of all rows
     * @param maker of what a row records in
     * @param names of the labels, each once
     */
    public Rows(int limit, Supplier<T> maker, String... names) {
        if (names.length == 0 || new HashSet<>(Arrays.asList(names)).size() < names.length) {
            throw new IllegalArgumentException("labels: " + Arrays.toString(names) + "; give one or more, each once");
        }
        this.limit = limit;
        this.maker = maker;
        this.names = List.of(names);
        other = maker.get();
    }

    /**
     * The row of these labels.
     *
     * @param a the value of the first label; null counts as empty, and so do the labels after it
     * @return its own, or {@link #other()} where there are as many rows as may be
     */
    public T row(String a) {
        return find(a, null, null);
    }

    /**
     * The row of these labels.
     *
     * @param a the value of the first label; null counts as empty
     * @param b that of the second
     * @return its own, or {@link #other()} where there are as many rows as may be
     */
    public T row(String a, String b) {
        return find(a, b, null);
    }

    /**
     * The row of these labels.
     *
     * @param a the value of the first label; null counts as empty
     * @param b that of the second
     * @param c that of the third
     * @return its own, or {@link #other()} where there are as many rows as may be
     */
    public T row(String a, String b, String c) {
        return find(a, b, c);
    }

    /**
     * The row of any number of labels. The array is the caller's to use again: one for each thread or event loop, filled
     * anew for each event, is no allocation.
     *
     * @param values in the order of the names; null counts as empty. Those that are missing at the end are empty, those
     *     beyond the last name are not looked at.
     * @return its own, or {@link #other()} where there are as many rows as may be
     */
    public T rowOf(String[] values) {
        boolean wasFull = isFull;
        Place<T>[] table = this.table;
        int labels = Math.min(values.length, names.size());
        Place<T> place = placeOf(table, values, labels);
        return place != null ? place.series : wasFull ? other : add(values);
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
    public T other() {
        return other;
    }

    /**
     * The rows so far.
     *
     * @return a copy, in the order in which they came
     */
    public List<Row<T>> rows() {
        synchronized (rows) {
            return List.copyOf(rows);
        }
    }

    private T find(String a, String b, String c) {
        // Read first: a table that is read after it was said to be full has all rows.
        boolean wasFull = isFull;
        Place<T>[] table = this.table;
        Place<T> place = placeOf(table, a, b, c);
        return place != null ? place.series : wasFull ? other : add(new String[] {a, b, c});
    }

    /**
     * The row's place, or null where it has none yet; labels beyond the third are empty. Each place is read once: what is
     * free now may be another's a moment later.
     */
    private static <T> Place<T> placeOf(Place<T>[] table, String a, String b, String c) {
        int mask = table.length - 1;
        int hash = (hash(a) * 31 + hash(b)) * 31 + hash(c);
        for (int at = spread(hash); ; at++) {
            Place<T> place = table[at & mask];
            if (place == null || place.is(a, b, c)) {
                return place;
            }
        }
    }

    private static <T> Place<T> placeOf(Place<T>[] table, String[] values, int labels) {
        int mask = table.length - 1;
        for (int at = spread(hash(values, labels)); ; at++) {
            Place<T> place = table[at & mask];
            if (place == null || place.is(values, labels)) {
                return place;
            }
        }
    }

    /** Under the lock: puts a row that is not there yet where a look-up will find it. */
    private static <T> void put(Place<T>[] table, Place<T> added) {
        int mask = table.length - 1;
        int at = spread(hash(added.values, added.values.length));
        while (table[at & mask] != null) {
            at++;
        }
        table[at & mask] = added;
    }

    private static int hash(String[] values, int labels) {
        int hash = 0;
        for (int n = 0; n < SPREAD; n++) {
            hash = hash * 31 + (n < labels ? hash(values[n]) : 0);
        }
        for (int n = SPREAD; n < labels; n++) {
            // An empty one adds nothing, so that it is the same whether it is named or left out.
            hash += hash(values[n]) * (2 * n + 1);
        }
        return hash;
    }

    private static int spread(int hash) {
        return hash ^ hash >>> 16;
    }

    private static int hash(String value) {
        return value == null ? 0 : value.hashCode();
    }

    private T add(String[] found) {
        String[] values = new String[names.size()];
        for (int n = 0; n < values.length; n++) {
            values[n] = n < found.length ? text(found[n]) : "";
        }
        synchronized (rows) {
            Place<T> known = placeOf(table, values, values.length);
            if (known != null) {
                return known.series;
            }
            if (rows.size() >= limit) {
                isFull = true;
                return other;
            }
            Place<T> added = new Place<>(values, maker.get());
            if (4 * (rows.size() + 1) > table.length) {
                table = wider(table);
            }
            put(table, added);
            rows.add(new Row<>(List.of(values), added.series));
            return added.series;
        }
    }

    private static <T> Place<T>[] wider(Place<T>[] table) {
        Place<T>[] wider = places(2 * table.length);
        for (Place<T> place : table) {
            if (place != null) {
                put(wider, place);
            }
        }
        return wider;
    }

    private static String text(String value) {
        return Objects.requireNonNullElse(value, "");
    }

    @SuppressWarnings("unchecked")
    private static <T> Place<T>[] places(int length) {
        return (Place<T>[]) new Place<?>[length];
    }

    /** A row with its first labels where comparing finds them soonest. */
    private static final class Place<T> {
        private final String a;
        private final String b;
        private final String c;

        /** Whether all labels beyond the third are empty. */
        private final boolean isShort;

        private final String[] values;
        private final T series;

        Place(String[] values, T series) {
            a = values[0];
            b = values.length > 1 ? values[1] : "";
            c = values.length > 2 ? values[2] : "";
            isShort = Arrays.stream(values).skip(SPREAD).allMatch(String::isEmpty);
            this.values = values;
            this.series = series;
        }

        boolean is(String a, String b, String c) {
            return same(a, this.a) && same(b, this.b) && same(c, this.c) && isShort;
        }

        boolean is(String[] values, int labels) {
            for (int n = 0; n < this.values.length; n++) {
                if (!same(n < labels ? values[n] : null, this.values[n])) {
                    return false;
                }
            }
            return true;
        }

        private static boolean same(String value, String known) {
            return value == known || known.equals(text(value));
        }
    }
}
