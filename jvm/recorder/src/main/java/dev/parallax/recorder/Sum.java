package dev.parallax.recorder;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.atomic.LongAdder;

/**
 * Two sums that any number of threads add to, what came and what went: a platform thread in a cell of its own with a load and a
 * store, whoever has none in what all share.
 *
 * <p>A cell is given to the first thread that comes with a number of its place, and to another when that one has ended: after
 * {@link Thread#isAlive()} said so, which all it added happens before (JLS 17.4.4). Cells only grow, so a reader adds them up
 * whosever they are.
 */
final class Sum {
    private static final int CELLS = Integer.highestOneBit(2 * Recorder.OWNED_MAX - 1);

    private final Cell[] cells = new Cell[CELLS];
    private final LongAdder came = new LongAdder();
    private final LongAdder went = new LongAdder();

    /** Never has an owner nor an amount: whoever comes to it is sent to {@link #add}. */
    private final Cell nobodys = new Cell(0);

    /** What one thread adds up, between empty cache lines wherever a collection moves it. */
    private final class Cell extends Near {
        private static final int CAME = 16;
        private static final int WENT = 17;
        private static final int LENGTH = 32;
        private static final VarHandle SLOT = MethodHandles.arrayElementVarHandle(long[].class);

        /** Read without order: a thread compares it with itself, and only for itself it is ever stored. */
        private Thread owner;

        private final long[] slots;

        Cell(int length) {
            slots = new long[length];
        }

        @Override
        public void record(long amount) {
            if (owner == Thread.currentThread()) {
                addOwn(amount);
            } else {
                Sum.this.add(amount);
            }
        }

        /** With release: who sees that one went has to see that it came. */
        void addOwn(long amount) {
            int at = amount >= 0 ? CAME : WENT;
            SLOT.setRelease(slots, at, slots[at] + Math.abs(amount));
        }

        long sum(int at) {
            return (long) SLOT.getAcquire(slots, at);
        }
    }

    /** @param amount below zero: so many went */
    void add(long amount) {
        Thread thread = Thread.currentThread();
        Cell cell = own(thread);
        if (cell != null) {
            cell.addOwn(amount);
        } else if (amount >= 0) {
            came.add(amount);
        } else {
            went.add(-amount);
        }
    }

    Near near() {
        Cell cell = own(Thread.currentThread());
        return cell != null ? cell : nobodys;
    }

    /** Null where the thread is virtual, or another one has its place. */
    private Cell own(Thread thread) {
        int at = (int) thread.getId() & CELLS - 1;
        Cell cell = cells[at];
        if (cell != null && cell.owner == thread) {
            return cell;
        }
        return isTaken(cell) || Recorder.isVirtual(thread) ? null : take(at, thread);
    }

    private Cell take(int at, Thread thread) {
        synchronized (cells) {
            if (isTaken(cells[at])) {
                return null;
            }
            if (cells[at] == null) {
                cells[at] = new Cell(Cell.LENGTH);
            }
            cells[at].owner = thread;
            return cells[at];
        }
    }

    /** Without the lock, one that is new may seem to have no owner yet. */
    private static boolean isTaken(Cell cell) {
        Thread owner = cell == null ? null : cell.owner;
        return owner != null && owner.isAlive();
    }

    /** All that came before this was called, and some of what comes meanwhile; never less than before. */
    long came() {
        forgetEnded();
        return came.sum() + sum(Cell.CAME);
    }

    /** As {@link #came()}. */
    long went() {
        return went.sum() + sum(Cell.WENT);
    }

    /**
     * A thread that has ended is not held, nor what it has loaded. Whoever takes its place sees all it added: it ended before
     * this, and this before the next hold of the lock.
     */
    private void forgetEnded() {
        synchronized (cells) {
            for (Cell cell : cells) {
                if (cell != null && cell.owner != null && !cell.owner.isAlive()) {
                    cell.owner = null;
                }
            }
        }
    }

    private long sum(int at) {
        long sum = 0;
        for (Cell cell : cells) {
            if (cell != null) {
                sum += cell.sum(at);
            }
        }
        return sum;
    }
}
