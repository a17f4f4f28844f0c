package dev.parallax.recorder;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * Counts what one thread at a time records; another thread, the reader, takes what is new without stopping it.
 *
 * <p>Why this is right in Java's memory model:
 *
 * <ul>
 *   <li><b>One writer.</b> An owned cell is written by its owner alone. A shared one is written between a claim, which is
 *       a compare-and-set with acquire, and its release: writers follow one another in happens-before order. Nothing
 *       here rests on which carrier a virtual thread has, nor on where it may lose it: a claim is held by the record.
 *       An owner that has ended is replaced after {@link Thread#isAlive()} said so, which all it did happens before
 *       (JLS 17.4.4).
 *   <li><b>A copy is a state that was.</b> The version is made odd (opaque), a store-store fence, the counts (plain), the
 *       version is made even (release). The reader loads the version (acquire), the counts (plain), a load-load fence,
 *       the version (opaque). A count that was written after the copy began is ordered behind an odd version, and the
 *       reader's second load behind that count: it sees another version, and throws the copy away. This is how {@code
 *       StampedLock} validates plain reads (Boehm, Can seqlocks get along with programming language memory models?,
 *       MSPC 2012). Plain longs may tear (JLS 17.7) and plain loads may race; both only within copies that are thrown
 *       away.
 *   <li><b>Repeats have no version.</b> A value that is the one before, to which a bucket of the page belongs already, only
 *       raises a number (release), which the reader loads between its two looks at the version. With each number of repeats
 *       the page is a state that was; which value it is that came again changes with the version alone.
 *   <li><b>A reader is never starved.</b> Where the writer is too busy for a copy, the reader offers an empty page. The
 *       writer turns to it with its next record and publishes it with release, so a reader that sees it (acquire) has
 *       the older one whole and final. Growing is the same step with a page of the writer's own.
 *   <li><b>What is not promised.</b> A record that races with a reader is in this interval or in the next one. A writer
 *       that lost its CPU within a record, and does not get it back in time, is left for the next interval as a whole.
 * </ul>
 */
class Cell extends Near {
    /** Longer than this is no duration but a start that was never stamped: 13 days. */
    static final long BELIEVABLE = 1L << 50;

    /** How often a copy is tried before the writer is asked to turn the page. A copy takes about a microsecond. */
    private static final int TRIES = 16;

    /** How long the reader waits for the page, at most: a writer that runs turns it within its next record. */
    private static final long PATIENCE_NS = 10_000_000;

    /** Of each thread that reads, to copy a page into: ten thousand series would leave a hundred megabytes behind. */
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
     * The only thread that records here; null when whoever claims it does. Read without order: a thread compares it with
     * itself, and only the thread itself ever stores itself here.
     */
    Thread owner;

    /** Where others than the owner record what they give to this. */
    private final Recorder recorder;

    private boolean claimed;

    /** The writer's: the newest page, its slots, and what turns a bucket's number into its slot. */
    private Page page;

    private long[] slots;
    private int base;

    /** By the reader for the writer. */
    private Page offered;

    /** The reader's: the page it knows, and what it has taken of it. */
    private Page known;

    private long[] taken;

    Cell(Recorder recorder, Thread owner) {
        this.recorder = recorder;
        this.owner = owner;
        turnTo(new Page(0, 0));
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
     * Adds one duration. The caller is the owner, or has claimed this.
     *
     * <p>As {@link #addAt} does, in one place: an event loop is deep in calls when it comes here, and a JVM inlines no deeper
     * than 15 (MaxInlineLevel). What stands here is inlined, and what would be called from here is a call.
     */
    void add(long ns) {
        // As Long.compareUnsigned: seen without a sign, what lies below the first is above all.
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
     * As {@link #add}, for who often has the same again: a repeat touches 16 bytes of a page where any other record touches its
     * header and a bucket. The caller is the owner.
     *
     * @param ns a duration, not above {@link Buckets#LONGEST}
     */
    void addOften(long ns) {
        long[] slots = this.slots;
        if (slots[Page.LAST] == ns) {
            // Needs no version: a copy is a state that was with either number of repeats.
            Page.SLOT.setRelease(slots, Page.REPEATS, slots[Page.REPEATS] + 1);
        } else {
            addAnother(ns);
        }
    }

    private void addAnother(long ns) {
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
        boolean isUsable = ns > 0 && ns <= BELIEVABLE;
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
            turn(index);
            at = index - base;
        }
        return at;
    }

    /** To the page that the reader offers, or to one of its own where none is offered or the bucket is not on it. */
    private void turn(int index) {
        Page next = (Page) OFFERED.getAcquire(this);
        if (next == null || !next.covers(index)) {
            next = Page.covering(index, page);
        }
        next.older = page;
        // Before the page is seen, so that no later offer is taken back here.
        OFFERED.setOpaque(this, null);
        turnTo(next);
    }

    private void turnTo(Page next) {
        slots = next.slots;
        base = next.first - Page.BUCKETS;
        PAGE.setRelease(this, next);
    }

    /** Makes the caller the only one that may add, until {@link #unclaim()}; false when another is. Never waits. */
    boolean claim() {
        return !(boolean) CLAIMED.getOpaque(this) && CLAIMED.compareAndSet(this, false, true);
    }

    void unclaim() {
        CLAIMED.setRelease(this, false);
    }

    /** Whether there is something to take. What comes meanwhile is for the next time. */
    boolean hasNew() {
        return PAGE.getAcquire(this) != known || known.isNewerThan(taken);
    }

    /**
     * Adds to {@code into} what was recorded since the last time. The caller is the only reader. Where memory gives out, what
     * is not added yet comes with the next time.
     *
     * @return false when the writer stands within a record: then what is new here comes with the next time
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
        // A page that was turned is all up to a moment after this call began.
        while (!takeOlder(into) && !takeCopy(into)) {
            if (System.nanoTime() - begin > PATIENCE_NS) {
                return false;
            }
            Thread.yield();
        }
        return true;
    }

    /** As {@link #take}, of a writer that has ended: whatever stands there is final. */
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

    /** Takes what is new on all pages but the newest one, which is known from then on. False when it was already. */
    private boolean takeOlder(Tally into) {
        Page newest = (Page) PAGE.getAcquire(this);
        if (newest == known) {
            return false;
        }
        // All memory before anything is added: what fails after that would be added twice.
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
