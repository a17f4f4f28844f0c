package dev.parallax.recorder;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * What one thread adds to a {@link Sum}: 24 bytes that share no cache line with another thread's, wherever the garbage
 * collector moves them.
 */
abstract class SumCell extends LeadingPadding {
    private static final VarHandle ADDED;
    private static final VarHandle REMOVED;

    static {
        try {
            MethodHandles.Lookup lookup = MethodHandles.lookup();
            ADDED = lookup.findVarHandle(SumCell.class, "added", long.class);
            REMOVED = lookup.findVarHandle(SumCell.class, "removed", long.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    /** Read without ordering: a thread compares it only with itself, and it is stored only for that thread. */
    Thread owner;

    private final Sum sum;
    private long added;
    private long removed;

    private SumCell(Sum sum) {
        this.sum = sum;
    }

    @Override
    public void record(long amount) {
        if (owner != Thread.currentThread()) {
            sum.add(amount);
        } else if (amount >= 0) {
            // addOwn written out, to save a call: see Cell.add.
            ADDED.setRelease(this, added + amount);
        } else {
            REMOVED.setRelease(this, removed - amount);
        }
    }

    /** Called by the owner. Uses release stores: anyone who sees a subtraction must see the addition before it. */
    void addOwn(long amount) {
        if (amount >= 0) {
            ADDED.setRelease(this, added + amount);
        } else {
            REMOVED.setRelease(this, removed - amount);
        }
    }

    long added() {
        return (long) ADDED.getAcquire(this);
    }

    long removed() {
        return (long) REMOVED.getAcquire(this);
    }

    /** Adds an empty cache line after the fields. */
    static final class Padded extends SumCell {
        private long empty1, empty2, empty3, empty4, empty5, empty6, empty7, empty8;

        Padded(Sum sum) {
            super(sum);
        }
    }
}

/**
 * An empty cache line: fields of a class are laid out after those of its superclass. The int fills the gap after the
 * object header.
 */
abstract class LeadingPadding extends ThreadHandle {
    private int empty0;
    private long empty1, empty2, empty3, empty4, empty5, empty6, empty7, empty8;
}
