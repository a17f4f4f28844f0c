package dev.parallax.recorder;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.function.Supplier;

/**
 * One {@code T} per combination of labels that are known only after the event, such as a status or a route, up to a
 * limit; everything beyond it goes to {@link #other()}.
 *
 * <p>A row is never evicted or mixed up with another. Labels known from the start belong in a {@link Description}, or
 * in a row that is looked up once and kept.
 *
 * <p>Cost: a few nanoseconds to look up labels seen before, or any labels once the limit is reached; no lock, no
 * allocation. The first lookup of a row takes a lock.
 *
 * @param <T> the type of recorder or counter
 */
public final class Rows<T> {
    /** Number of labels with fields of their own, which are compared without a loop. */
    private static final int SPREAD = 3;

    /**
     * Hash table with open addressing, at most a quarter full, rehashed as a whole when it grows. Slots are written
     * under a lock and read without one: a reader that misses a new slot takes the lock and finds it. All fields of a
     * slot are final, so a reader that sees it sees all of it (JLS 17.5).
     */
    private volatile Slot<T>[] table = newTable(8);

    /** No row is added any more. */
    private volatile boolean isFull;

    private final List<String> names;
    private final int limit;
    private final Supplier<T> maker;
    private final T other;
    private final List<Row<T>> rows = new ArrayList<>();

    /**
     * One combination of labels.
     *
     * @param values in the order of the names; empty strings for missing values
     * @param series what it is recorded in
     * @param <T> the type of recorder or counter
     */
    public record Row<T>(List<String> values, T series) {}

    /**
     * Starts without rows.
     *
     * @param limit maximum number of rows; each takes memory for every thread that records in it
     * @param maker creates the recorder or counter of a row
     * @param names of the labels, each once
     */
    public Rows(int limit, Supplier<T> maker, String... names) {
        if (names.length == 0 || new HashSet<>(Arrays.asList(names)).size() < names.length) {
            throw new IllegalArgumentException("labels " + Arrays.toString(names) + ": at least one is required, each only once");
        }
        this.limit = limit;
        this.maker = maker;
        this.names = List.of(names);
        other = maker.get();
    }

    /**
     * Returns the row for these labels.
     *
     * @param a value of the first label; null counts as empty, and so do further labels
     * @return its own, or {@link #other()} once the limit is reached
     */
    public T row(String a) {
        return find(a, null, null);
    }

    /**
     * Returns the row for these labels.
     *
     * @param a value of the first label; null counts as empty
     * @param b value of the second
     * @return its own, or {@link #other()} once the limit is reached
     */
    public T row(String a, String b) {
        return find(a, b, null);
    }

    /**
     * Returns the row for these labels.
     *
     * @param a value of the first label; null counts as empty
     * @param b value of the second
     * @param c value of the third
     * @return its own, or {@link #other()} once the limit is reached
     */
    public T row(String a, String b, String c) {
        return find(a, b, c);
    }

    /**
     * Returns the row for any number of labels. The caller may reuse the array: one array per thread or event loop,
     * refilled per event, avoids any allocation.
     *
     * @param values in the order of the names; null counts as empty, missing values are empty, and extra values are
     *     ignored
     * @return its own, or {@link #other()} once the limit is reached
     */
    public T rowOf(String[] values) {
        boolean wasFull = isFull;
        Slot<T>[] table = this.table;
        int labels = Math.min(values.length, names.size());
        Slot<T> slot = findSlot(table, values, labels);
        return slot != null ? slot.series : wasFull ? other : add(values);
    }

    /**
     * Names of the labels.
     *
     * @return in order
     */
    public List<String> names() {
        return names;
    }

    /**
     * What records everything beyond the limit.
     *
     * @return always the same object
     */
    public T other() {
        return other;
    }

    /**
     * The rows so far.
     *
     * @return a copy, in the order of creation
     */
    public List<Row<T>> rows() {
        synchronized (rows) {
            return List.copyOf(rows);
        }
    }

    private T find(String a, String b, String c) {
        // Read before the table: a table read after it was marked full has all rows.
        boolean wasFull = isFull;
        Slot<T>[] table = this.table;
        Slot<T> slot = findSlot(table, a, b, c);
        return slot != null ? slot.series : wasFull ? other : add(new String[] {a, b, c});
    }

    /**
     * Returns the row's slot, or null if it has none yet; labels beyond the third are empty. Each slot is read once: a
     * free slot may be taken a moment later.
     */
    private static <T> Slot<T> findSlot(Slot<T>[] table, String a, String b, String c) {
        int mask = table.length - 1;
        int hash = (hash(a) * 31 + hash(b)) * 31 + hash(c);
        for (int at = spread(hash); ; at++) {
            Slot<T> slot = table[at & mask];
            if (slot == null || slot.is(a, b, c)) {
                return slot;
            }
        }
    }

    private static <T> Slot<T> findSlot(Slot<T>[] table, String[] values, int labels) {
        int mask = table.length - 1;
        for (int at = spread(hash(values, labels)); ; at++) {
            Slot<T> slot = table[at & mask];
            if (slot == null || slot.is(values, labels)) {
                return slot;
            }
        }
    }

    /** Adds a row that is not in the table. Call it under the lock. */
    private static <T> void put(Slot<T>[] table, Slot<T> added) {
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
            // An empty value adds nothing, so it does not matter whether it is given or left out.
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
            Slot<T> known = findSlot(table, values, values.length);
            if (known != null) {
                return known.series;
            }
            if (rows.size() >= limit) {
                isFull = true;
                return other;
            }
            Slot<T> added = new Slot<>(values, maker.get());
            if (4 * (rows.size() + 1) > table.length) {
                table = wider(table);
            }
            put(table, added);
            rows.add(new Row<>(List.of(values), added.series));
            return added.series;
        }
    }

    private static <T> Slot<T>[] wider(Slot<T>[] table) {
        Slot<T>[] wider = newTable(2 * table.length);
        for (Slot<T> slot : table) {
            if (slot != null) {
                put(wider, slot);
            }
        }
        return wider;
    }

    private static String text(String value) {
        return Objects.requireNonNullElse(value, "");
    }

    @SuppressWarnings("unchecked")
    private static <T> Slot<T>[] newTable(int length) {
        return (Slot<T>[]) new Slot<?>[length];
    }

    /** A row, with its first labels in fields so that comparing is fast. */
    private static final class Slot<T> {
        private final String a;
        private final String b;
        private final String c;

        /** Whether all labels beyond the third are empty. */
        private final boolean isShort;

        private final String[] values;
        private final T series;

        Slot(String[] values, T series) {
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
