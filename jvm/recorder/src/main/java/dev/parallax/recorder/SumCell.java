package dev.parallax.recorder;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/** What one thread adds to a {@link Sum}: 24 bytes, in no cache line with another's wherever a collection moves them. */
abstract class SumCell extends Before {
    private static final VarHandle CAME;
    private static final VarHandle WENT;

    static {
        try {
            MethodHandles.Lookup lookup = MethodHandles.lookup();
            CAME = lookup.findVarHandle(SumCell.class, "came", long.class);
            WENT = lookup.findVarHandle(SumCell.class, "went", long.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    /** Read without order: a thread compares it with itself, and only for itself it is ever stored. */
    Thread owner;

    private final Sum sum;
    private long came;
    private long went;

    private SumCell(Sum sum) {
        this.sum = sum;
    }

    @Override
    public void record(long amount) {
        if (owner != Thread.currentThread()) {
            sum.add(amount);
        } else if (amount >= 0) {
            // As addOwn, without a call more: see Cell.add.
            CAME.setRelease(this, came + amount);
        } else {
            WENT.setRelease(this, went - amount);
        }
    }

    /** Called by the owner. With release: who sees that one went has to see that it came. */
    void addOwn(long amount) {
        if (amount >= 0) {
            CAME.setRelease(this, came + amount);
        } else {
            WENT.setRelease(this, went - amount);
        }
    }

    long came() {
        return (long) CAME.getAcquire(this);
    }

    long went() {
        return (long) WENT.getAcquire(this);
    }

    /** With an empty cache line behind it. */
    static final class Apart extends SumCell {
        private long empty1, empty2, empty3, empty4, empty5, empty6, empty7, empty8;

        Apart(Sum sum) {
            super(sum);
        }
    }
}

/** An empty cache line: the fields of a class lie behind those of the one that it extends. The first fills the header's gap. */
abstract class Before extends Near {
    private int empty0;
    private long empty1, empty2, empty3, empty4, empty5, empty6, empty7, empty8;
}
