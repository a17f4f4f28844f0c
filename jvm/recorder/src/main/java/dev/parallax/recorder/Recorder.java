package dev.parallax.recorder;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiFunction;

/**
 * Durations of one kind, recorded by any number of threads.
 *
 * <p>A platform thread counts in a cell of its own, found without a lock and written with plain stores. Beyond {@link
 * #OWNED_MAX} threads, and for all virtual ones, there are shared cells that are claimed for the length of a record with
 * one compare-and-set; where all are claimed there comes one more, so nobody waits, and there are never more than threads
 * that were within a record at once.
 *
 * <p>Nothing is thrown at the caller, whatever the stamps: see {@link Durations#unusable()} and {@link
 * Durations#outOfRange()}.
 *
 * <p>Cost: recording takes a few nanoseconds and no memory. A thread's first record, and its first one of a length beyond
 * those before, take some kilobytes: 1.3 for each power of two between its shortest and its longest duration, with one to
 * spare at both ends. Reading takes a microsecond or two for each thread that recorded since.
 */
public final class Recorder {
    /** How many platform threads have a cell of their own: event loops are twice the CPUs. */
    static final int OWNED_MAX = Math.max(16, 4 * Runtime.getRuntime().availableProcessors());

    /** Thread.isVirtual() where there is such a thing. */
    private static final MethodHandle IS_VIRTUAL = virtualTest();

    /** By the thread's number, then the places after it; read without a lock, replaced as a whole. Never full. */
    private volatile Cell[] owned = new Cell[4];

    private volatile Cell[] shared = {};

    /** Guards replacing the two above. Held for moments only, and never while a cell is read. */
    private final Object tables = new Object();

    private int ownedCount;

    /** Null until it is asked for. */
    private volatile Near nobodys;

    /** Guards what is below, which is the readers'. */
    private final Object reading = new Object();

    private Tally total = new Tally();

    /** Cells that are in no table any more and not in the total yet: nobody else knows them. */
    private List<Cell> ended = new ArrayList<>();

    /** The total as it was handed out, and is again while nothing is new; null while it is being made. */
    private Durations known = Durations.NONE;

    private long late;

    /** For a thread that owns the cell, or for none. */
    private final BiFunction<Recorder, Thread, Cell> maker;

    /** Without a name: who makes it knows what it is of. */
    public Recorder() {
        this(Cell::new);
    }

    Recorder(BiFunction<Recorder, Thread, Cell> maker) {
        this.maker = maker;
    }

    /**
     * Records what began and ended.
     *
     * @param startNs of {@link System#nanoTime()}
     * @param endNs of the same clock
     */
    public void record(long startNs, long endNs) {
        record(endNs - startNs);
    }

    /**
     * Records what ends now. Reads the clock.
     *
     * @param intendedNs when it was due, of {@link System#nanoTime()}; for what was not scheduled, when it began
     */
    public void recordSince(long intendedNs) {
        record(System.nanoTime() - intendedNs);
    }

    /**
     * Records a duration.
     *
     * @param durationNs in nanoseconds
     */
    public void record(long durationNs) {
        Thread thread = Thread.currentThread();
        Cell[] cells = owned;
        Cell cell = cells[(int) thread.getId() & (cells.length - 1)];
        if (cell != null && cell.owner == thread) {
            cell.add(durationNs);
        } else {
            recordElsewhere(thread, durationNs);
        }
    }

    /**
     * This one, as the calling thread finds it.
     *
     * @return takes durations in nanoseconds
     */
    public Near near() {
        Cell cell = findOrOwn(Thread.currentThread());
        return cell != null ? cell : nobodys();
    }

    /** A cell that never has an owner nor a record: whoever comes to it is sent here. */
    private Near nobodys() {
        Near known = nobodys;
        if (known != null) {
            return known;
        }
        synchronized (tables) {
            if (nobodys == null) {
                nobodys = maker.apply(this, null);
            }
            return nobodys;
        }
    }

    private Cell findOrOwn(Thread thread) {
        Cell cell = find(owned, thread);
        return cell == null && ownedCount < OWNED_MAX && !isVirtual(thread) ? own(thread) : cell;
    }

    private void recordElsewhere(Thread thread, long ns) {
        Cell cell = findOrOwn(thread);
        if (cell != null) {
            cell.add(ns);
            return;
        }
        cell = claim(thread);
        try {
            cell.add(ns);
        } finally {
            cell.unclaim();
        }
    }

    private static Cell find(Cell[] cells, Thread thread) {
        int mask = cells.length - 1;
        for (int at = (int) thread.getId() & mask; cells[at] != null; at = (at + 1) & mask) {
            if (cells[at].owner == thread) {
                return cells[at];
            }
        }
        return null;
    }

    /** A cell for {@code thread}: that of a thread that has ended, or a new one; null when there are enough. */
    private Cell own(Thread thread) {
        synchronized (tables) {
            List<Cell> all = present(owned);
            Cell mine = null;
            for (Cell cell : all) {
                if (mine == null && !cell.owner.isAlive()) {
                    mine = cell;
                }
            }
            if (mine != null) {
                mine.owner = thread;
            } else if (all.size() < OWNED_MAX) {
                mine = maker.apply(this, thread);
                all.add(mine);
            }
            place(all);
            return mine;
        }
    }

    /** Puts cells into a new table, each near the place that its owner's number gives. */
    private void place(List<Cell> all) {
        int size = Math.max(4, Integer.highestOneBit(4 * all.size()));
        Cell[] table = new Cell[size];
        for (Cell cell : all) {
            int at = (int) cell.owner.getId() & (size - 1);
            while (table[at] != null) {
                at = (at + 1) & (size - 1);
            }
            table[at] = cell;
        }
        ownedCount = all.size();
        owned = table;
    }

    /** A shared cell that nobody else writes to until it is unclaimed. */
    private Cell claim(Thread thread) {
        Cell cell = claimOne(thread);
        if (cell != null) {
            return cell;
        }
        synchronized (tables) {
            // Those that waited here find what the first of them made: virtual threads come by the thousand.
            cell = claimOne(thread);
            if (cell == null) {
                cell = maker.apply(this, null);
                cell.claim();
                List<Cell> all = present(shared);
                all.add(cell);
                shared = all.toArray(new Cell[0]);
            }
            return cell;
        }
    }

    private Cell claimOne(Thread thread) {
        Cell[] cells = shared;
        int begin = (int) thread.getId() & Integer.MAX_VALUE;
        for (int n = 0; n < cells.length; n++) {
            Cell cell = cells[(begin + n) % cells.length];
            if (cell.claim()) {
                return cell;
            }
        }
        return null;
    }

    private static List<Cell> present(Cell[] cells) {
        List<Cell> all = new ArrayList<>();
        for (Cell cell : cells) {
            if (cell != null) {
                all.add(cell);
            }
        }
        return all;
    }

    /**
     * All that was recorded so far. Stops no writer and loses no record; one that races with this is in it or in the next
     * one. For an interval, see {@link Durations#since}.
     *
     * @return count, sum, least and longest of the very same records
     */
    public Durations total() {
        synchronized (reading) {
            List<Cell> live = sort();
            if (known != null && ended.isEmpty() && live.stream().noneMatch(Cell::hasNew)) {
                return known;
            }
            // Who has the last one keeps it as it was.
            total = total.copy();
            known = null;
            // Where memory gives out, the next reading finds those that are not in the total.
            for (int last = ended.size() - 1; last >= 0; last--) {
                ended.get(last).takeLast(total);
                ended.remove(last);
            }
            for (Cell cell : live) {
                if (!cell.take(total)) {
                    late++;
                }
            }
            known = new Durations(total);
            return known;
        }
    }

    /**
     * How often a thread was left for the next reading because it had lost its CPU within a record.
     *
     * @return how often, in all readings so far
     */
    public long late() {
        synchronized (reading) {
            return late;
        }
    }

    /** Those of threads that have ended are out of the table from here on, so that no thread takes them over. */
    private List<Cell> sort() {
        synchronized (tables) {
            List<Cell> live = new ArrayList<>();
            List<Cell> allEnded = new ArrayList<>(ended);
            for (Cell cell : present(owned)) {
                (cell.owner.isAlive() ? live : allEnded).add(cell);
            }
            if (allEnded.size() > ended.size()) {
                place(live);
                // Nothing may fail between the two, or a cell is in both places or in none.
                ended = allEnded;
            }
            live.addAll(List.of(shared));
            return live;
        }
    }

    /** For tests: how many cells there are. */
    int cells() {
        synchronized (tables) {
            return present(owned).size() + shared.length;
        }
    }

    static boolean isVirtual(Thread thread) {
        try {
            return IS_VIRTUAL != null && (boolean) IS_VIRTUAL.invokeExact(thread);
        } catch (Throwable e) {
            throw new AssertionError("Thread.isVirtual() throws nothing", e);
        }
    }

    private static MethodHandle virtualTest() {
        try {
            MethodType type = MethodType.methodType(boolean.class);
            return MethodHandles.publicLookup().findVirtual(Thread.class, "isVirtual", type);
        } catch (ReflectiveOperationException e) {
            return null;
        }
    }
}
