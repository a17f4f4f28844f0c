package dev.parallax.recorder;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiFunction;

/**
 * Records durations of one kind from any number of threads.
 *
 * <p>A platform thread counts in a cell of its own, found without a lock and written with plain stores. Threads beyond
 * {@link #OWNED_MAX} and all virtual threads use shared cells, claimed for one record with one compare-and-set. If all
 * shared cells are claimed, another is added, so nobody waits; there are never more of them than threads that were
 * recording at once.
 *
 * <p>Nothing is thrown for invalid timestamps: see {@link Durations#unusable()} and {@link Durations#outOfRange()}.
 *
 * <p>Cost: a few nanoseconds and no allocation per record. A thread's first record, and its first one outside the range
 * of lengths so far, allocate some kilobytes: 1.3 for each power of two between its shortest and longest duration, plus
 * one spare at both ends. Reading takes a microsecond or two per thread that recorded since.
 */
public final class Recorder {
    /** Maximum number of platform threads with a cell of their own; event loops are twice the CPUs. */
    static final int OWNED_MAX = Math.max(16, 4 * Runtime.getRuntime().availableProcessors());

    /** {@code Thread.isVirtual()} if this JDK has it. */
    private static final MethodHandle IS_VIRTUAL = virtualTest();

    /** Hash table by thread id with linear probing; read without a lock, replaced as a whole, never full. */
    private volatile Cell[] owned = new Cell[4];

    private volatile Cell[] shared = {};

    /** Guards replacing these two tables. Held briefly, never while a cell is read. */
    private final Object tables = new Object();

    private int ownedCount;

    /** Created on first use. */
    private volatile ThreadHandle unowned;

    /** Guards the fields below, which belong to the readers. */
    private final Object reading = new Object();

    private Tally total = new Tally();

    /** Cells of ended threads, removed from the tables but not added to the total yet. */
    private List<Cell> ended = new ArrayList<>();

    /** The last total handed out, returned again while nothing is new; null while a total is being computed. */
    private Durations known = Durations.NONE;

    private long deferredReads;

    /** Creates a cell for its owner, or for none. */
    private final BiFunction<Recorder, Thread, Cell> maker;

    /** A recorder without a name; see {@link Catalog#durations(Description)} for a named one. */
    public Recorder() {
        this(Cell::new);
    }

    Recorder(BiFunction<Recorder, Thread, Cell> maker) {
        this.maker = maker;
    }

    /**
     * Records an operation by its start and end.
     *
     * @param startNs from {@link System#nanoTime()}
     * @param endNs from the same clock
     */
    public void record(long startNs, long endNs) {
        record(endNs - startNs);
    }

    /**
     * Records an operation that ends now. Reads the clock.
     *
     * @param intendedNs when it should have started, from {@link System#nanoTime()}; for unscheduled operations, when
     *     it started
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
     * A faster handle for the calling thread.
     *
     * @return takes durations in nanoseconds
     */
    public ThreadHandle threadHandle() {
        Cell cell = findOrOwn(Thread.currentThread());
        return cell != null ? cell : unowned();
    }

    /** A cell that never has an owner or a record: every caller is redirected to the recorder. */
    private ThreadHandle unowned() {
        ThreadHandle known = unowned;
        if (known != null) {
            return known;
        }
        synchronized (tables) {
            if (unowned == null) {
                unowned = maker.apply(this, null);
            }
            return unowned;
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

    /** Gives {@code thread} a cell: that of an ended thread, or a new one. Returns null if the limit is reached. */
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

    /** Puts the cells into a new table, each as close as possible to the slot of its owner's id. */
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

    /** Returns a shared cell to which nobody else writes until it is unclaimed. */
    private Cell claim(Thread thread) {
        Cell cell = claimOne(thread);
        if (cell != null) {
            return cell;
        }
        synchronized (tables) {
            // Threads that waited here find what the first of them created: virtual threads come by the thousand.
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
     * Everything recorded so far. Stops no writer and loses no record; a record made in the meantime is in this total or in
     * the next. For an interval, see {@link Durations#since}.
     *
     * @return count, sum, minimum and maximum of the same records
     */
    public Durations total() {
        synchronized (reading) {
            List<Cell> live = collectLive();
            if (known != null && ended.isEmpty() && live.stream().noneMatch(Cell::hasNew)) {
                return known;
            }
            // A caller that holds the last total keeps it unchanged.
            total = total.copy();
            known = null;
            // If memory runs out, the next reading finds the cells that are not in the total.
            for (int last = ended.size() - 1; last >= 0; last--) {
                ended.get(last).takeLast(total);
                ended.remove(last);
            }
            for (Cell cell : live) {
                if (!cell.take(total)) {
                    deferredReads++;
                }
            }
            known = new Durations(total);
            return known;
        }
    }

    /**
     * How often a thread's new records were left for the next reading because it had lost its CPU in the middle of a
     * record.
     *
     * @return total of all readings so far
     */
    public long deferredReads() {
        synchronized (reading) {
            return deferredReads;
        }
    }

    /** Returns live cells and removes those of ended threads from the table, so that no thread takes them over. */
    private List<Cell> collectLive() {
        synchronized (tables) {
            List<Cell> live = new ArrayList<>();
            List<Cell> allEnded = new ArrayList<>(ended);
            for (Cell cell : present(owned)) {
                (cell.owner.isAlive() ? live : allEnded).add(cell);
            }
            if (allEnded.size() > ended.size()) {
                place(live);
                // Nothing may fail between these two steps, or a cell would be in both places or in neither.
                ended = allEnded;
            }
            live.addAll(List.of(shared));
            return live;
        }
    }

    /** Number of cells, for tests. */
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
