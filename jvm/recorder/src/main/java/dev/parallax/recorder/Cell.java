package dev.parallax.recorder;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * Counts what one thread at a time records; a reader on another thread takes what is new without stopping the writer.
 *
 * <p>Why this is correct in Java's memory model:
 *
 * <ul>
 *   <li><b>One writer.</b> An owned cell is written by its owner alone. A shared cell is written between a claim, which
 *       is a compare-and-set with acquire, and its release, so its writers are ordered by happens-before. Neither
 *       depends on which carrier thread runs a virtual thread or on where it is unmounted: a claim belongs to the
 *       record. An owner that has ended is replaced only after {@link Thread#isAlive()} returned false, and everything
 *       it did happens before that (JLS 17.4.4).
 *   <li><b>A valid copy is a state that existed.</b> The writer makes the version odd (opaque), executes a store-store
 *       fence, stores the counts (plain) and makes the version even (release). The reader loads the version (acquire),
 *       the counts (plain), executes a load-load fence and loads the version again (opaque). A count written after the
 *       copy began is ordered after an odd version, and the reader's second load is ordered after its load of that
 *       count: it sees a different version and discards the copy. {@code StampedLock} validates plain reads in the same
 *       way (Boehm, Can seqlocks get along with programming language memory models?, MSPC 2012). Plain longs may tear
 *       (JLS 17.7) and plain loads may race, but only within copies that are discarded.
 *   <li><b>Repeats do not change the version.</b> A value equal to the previous one, whose bucket is on the page
 *       already, only increments a number (release), which the reader loads between its two loads of the version. With
 *       any number of repeats the page is a state that existed; which value repeats changes only together with the
 *       version.
 *   <li><b>A reader is never starved.</b> If the writer is too busy for a valid copy, the reader offers an empty page.
 *       The writer switches to it with its next record and publishes it with release, so a reader that sees it
 *       (acquire) has the older page complete and final. Growing is the same step with a page that the writer
 *       allocates.
 *   <li><b>Not guaranteed.</b> A record that races with a reader is in this interval or in the next. If a writer loses
 *       its CPU in the middle of a record and does not get it back in time, everything new in its cell is left for the
 *       next interval.
 * </ul>
 */
class Cell extends ThreadHandle {
    /** Anything longer, 13 days, is taken for a start that was never stamped. */
    static final long MAX_PLAUSIBLE = 1L << 50;

    /** Copies attempted before the writer is asked to switch pages. One copy takes about a microsecond. */
    private static final int TRIES = 16;

    /** Maximum wait for the switch, in nanoseconds; a running writer switches with its next record. */
    private static final long SWITCH_TIMEOUT_NS = 10_000_000;

    /**
     * Per reading thread, the array a page is copied into: one per series would take a hundred megabytes for ten
     * thousand series.
     */
    private static final ThreadLocal<long[]> COPY = ThreadLocal.withInitial(() -> new long[0]);

    private static final VarHandle PAGE;
    private static final VarHandle OFFERED;
    private static final VarHandle CLAIMED;

    static {
        try {
            MethodHandles.Lookup lookup = MethodHandles.lookup();
            PAGE = lookup.findVarHandle(Cell.class, "page", Page.class);
            OFFERED = lookup.findVarHandle(Cell.class, "offered", Page.class);
            CLAIMED = lookup.findVarHandle(Cell.class, "claimed", boolean.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    /**
     * The only thread that records here; null if anyone who claims the cell does. Read without ordering: a thread compares
     * it only with itself, and only that thread stores itself here.
     */
    Thread owner;

    /** Gets the records of threads other than the owner. */
    private final Recorder recorder;

    private boolean claimed;

    /** The writer's: the newest page, its slots, and the offset from a bucket's number to its slot. */
    private Page page;

    private long[] slots;
    private int base;

    /** From the reader to the writer. */
    private Page offered;

    /** The reader's: the page it knows, and what it has taken from it. */
    private Page known;

    private long[] taken;

    Cell(Recorder recorder, Thread owner) {
        this.recorder = recorder;
        this.owner = owner;
        switchTo(new Page(0, 0));
        known = page;
        taken = new long[page.slots.length];
    }

    @Override
    public void record(long durationNs) {
        if (owner == Thread.currentThread()) {
            add(durationNs);
        } else {
            recorder.record(durationNs);
        }
    }

    /**
     * Adds one duration. The caller is the owner, or has claimed this cell.
     *
     * <p>The body of {@link #addAt} is repeated here: an event loop is many calls deep when it gets here, and the JVM
     * inlines no deeper than 15 calls (MaxInlineLevel). Code in this method is inlined; a method called from here would
     * remain a call.
     */
    void add(long ns) {
        // Long.compareUnsigned written out: a value below the lower bound is above everything when taken as unsigned.
        if (ns - Buckets.EXACT + Long.MIN_VALUE > Buckets.LONGEST - Buckets.EXACT + Long.MIN_VALUE) {
            addUnusual(ns);
            return;
        }
        int index = Buckets.indexOfLong(ns);
        int at = index - base;
        long[] slots = this.slots;
        if (at < Page.BUCKETS || at >= slots.length || OFFERED.getOpaque(this) != null) {
            addAt(slotOf(index), ns);
            return;
        }
        long version = (slots[Page.VERSION] + 1) | 1;
        Page.SLOT.setOpaque(slots, Page.VERSION, version);
        VarHandle.storeStoreFence();
        slots[at]++;
        long sum = slots[Page.SUM] + ns;
        if (sum < 0) {
            slots[Page.SUM_HIGH]++;
            sum &= Long.MAX_VALUE;
        }
        slots[Page.SUM] = sum;
        if (ns < slots[Page.MIN]) {
            slots[Page.MIN] = ns;
        }
        if (ns > slots[Page.MAX]) {
            slots[Page.MAX] = ns;
        }
        Page.SLOT.setRelease(slots, Page.VERSION, version + 1);
    }

    /**
     * Like {@link #add}, for values that often repeat: a repeat touches 16 bytes of a page, any other record its header
     * and a bucket. The caller is the owner.
     *
     * @param ns a duration, at most {@link Buckets#LONGEST}
     */
    void addRepeatable(long ns) {
        long[] slots = this.slots;
        if (slots[Page.LAST] == ns) {
            // Needs no version: a copy is a valid state with either number of repeats.
            Page.SLOT.setRelease(slots, Page.REPEATS, slots[Page.REPEATS] + 1);
        } else {
            addDistinct(ns);
        }
    }

    private void addDistinct(long ns) {
        int at = slotOf(Buckets.index(ns));
        long[] slots = this.slots;
        long version = Page.begin(slots);
        Page.countRepeats(slots, page.first);
        slots[Page.REPEATS] = 0;
        slots[Page.LAST] = ns;
        count(slots, at, ns);
        Page.end(slots, version);
    }

    private void addAt(int at, long ns) {
        long[] slots = this.slots;
        long version = Page.begin(slots);
        count(slots, at, ns);
        Page.end(slots, version);
    }

    private void addUnusual(long ns) {
        if (ns >= 0 && ns < Buckets.EXACT) {
            addAt(slotOf(Buckets.index(ns)), ns);
            return;
        }
        boolean isUsable = ns > 0 && ns <= MAX_PLAUSIBLE;
        int at = slotOf(isUsable ? Buckets.COUNT - 1 : page.first);
        long version = Page.begin(slots);
        if (isUsable) {
            count(slots, at, ns);
            slots[Page.OUT_OF_RANGE]++;
        } else {
            slots[Page.UNUSABLE]++;
        }
        Page.end(slots, version);
    }

    private static void count(long[] slots, int at, long ns) {
        slots[at]++;
        Page.addToSum(slots, ns);
        if (ns < slots[Page.MIN]) {
            slots[Page.MIN] = ns;
        }
        if (ns > slots[Page.MAX]) {
            slots[Page.MAX] = ns;
        }
    }

    private int slotOf(int index) {
        int at = index - base;
        if (at < Page.BUCKETS || at >= slots.length || OFFERED.getOpaque(this) != null) {
            switchPage(index);
            at = index - base;
        }
        return at;
    }

    /**
     * Switches to the page offered by the reader, or to a new one if none is offered or it does not contain the bucket.
     */
    private void switchPage(int index) {
        Page next = (Page) OFFERED.getAcquire(this);
        if (next == null || !next.covers(index)) {
            next = Page.covering(index, page);
        }
        next.older = page;
        // Before the page becomes visible, so that a later offer is not withdrawn here.
        OFFERED.setOpaque(this, null);
        switchTo(next);
    }

    private void switchTo(Page next) {
        slots = next.slots;
        base = next.first - Page.BUCKETS;
        PAGE.setRelease(this, next);
    }

    /**
     * Makes the caller the only one that may add until {@link #unclaim()}; returns false if another thread has the
     * claim. Never waits.
     */
    boolean claim() {
        return !(boolean) CLAIMED.getOpaque(this) && CLAIMED.compareAndSet(this, false, true);
    }

    void unclaim() {
        CLAIMED.setRelease(this, false);
    }

    /** Whether there is something to take. Records made in the meantime are for the next time. */
    boolean hasNew() {
        return PAGE.getAcquire(this) != known || known.isNewerThan(taken);
    }

    /**
     * Adds to {@code into} what was recorded since the last call. The caller is the only reader. If memory runs out,
     * what was not added yet is added by the next call.
     *
     * @return false if the writer was in the middle of a record: what is new here is then taken next time
     */
    boolean take(Tally into) {
        takeOlder(into);
        for (int n = 0; n < TRIES; n++) {
            if (takeCopy(into)) {
                return true;
            }
            Thread.onSpinWait();
        }
        if (OFFERED.getOpaque(this) == null) {
            OFFERED.setRelease(this, new Page(known.first, known.end() - known.first));
        }
        long begin = System.nanoTime();
        // A switched page contains everything up to a moment after this call began.
        while (!takeOlder(into) && !takeCopy(into)) {
            if (System.nanoTime() - begin > SWITCH_TIMEOUT_NS) {
                return false;
            }
            Thread.yield();
        }
        return true;
    }

    /** Like {@link #take}, for a writer that has ended: the contents are final. */
    void takeLast(Tally into) {
        takeOlder(into);
        into.add(known, known.slots, taken);
    }

    private boolean takeCopy(Tally into) {
        if (!known.isNewerThan(taken)) {
            return true;
        }
        int length = known.slots.length;
        long[] copy = COPY.get();
        if (copy.length < length) {
            copy = new long[length];
            COPY.set(copy);
        }
        if (!known.copy(copy)) {
            return false;
        }
        into.add(known, copy, taken);
        return true;
    }

    /**
     * Takes what is new on all pages except the newest, which becomes the known one. Returns false if it was known
     * already.
     */
    private boolean takeOlder(Tally into) {
        Page newest = (Page) PAGE.getAcquire(this);
        if (newest == known) {
            return false;
        }
        // Allocates everything before adding anything: a failure after the first addition would add it twice.
        long[] fresh = new long[newest.slots.length];
        for (Page page = newest.older; page != null; page = page.older) {
            into.cover(page, page.slots);
        }
        for (Page page = newest; page != known; page = page.older) {
            Page older = page.older;
            if (older == known) {
                into.add(older, older.slots, taken);
            } else {
                into.add(older);
            }
        }
        newest.older = null;
        known = newest;
        taken = fresh;
        return true;
    }
}
