package dev.parallax.recorder;

import java.util.concurrent.atomic.LongAdder;
import java.util.function.ToLongFunction;

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

    private final SumCell[] cells = new SumCell[CELLS];
    private final LongAdder came = new LongAdder();
    private final LongAdder went = new LongAdder();

    /** Never has an owner nor an amount: whoever comes to it is sent to {@link #add}. */
    private final SumCell nobodys = new SumCell.Apart(this);

    /** @param amount below zero: so many went */
    void add(long amount) {
        Thread thread = Thread.currentThread();
        SumCell cell = own(thread);
        if (cell != null) {
            cell.addOwn(amount);
        } else if (amount >= 0) {
            came.add(amount);
        } else {
            went.add(-amount);
        }
    }

    Near near() {
        SumCell cell = own(Thread.currentThread());
        return cell != null ? cell : nobodys;
    }

    /** Null where the thread is virtual, or another one has its place. */
    private SumCell own(Thread thread) {
        int at = (int) thread.getId() & CELLS - 1;
        SumCell cell = cells[at];
        if (cell != null && cell.owner == thread) {
            return cell;
        }
        return isTaken(cell) || Recorder.isVirtual(thread) ? null : take(at, thread);
    }

    private SumCell take(int at, Thread thread) {
        synchronized (cells) {
            if (isTaken(cells[at])) {
                return null;
            }
            if (cells[at] == null) {
                cells[at] = new SumCell.Apart(this);
            }
            cells[at].owner = thread;
            return cells[at];
        }
    }

    /** Without the lock, one that is new may seem to have no owner yet. */
    private static boolean isTaken(SumCell cell) {
        Thread owner = cell == null ? null : cell.owner;
        return owner != null && owner.isAlive();
    }

    /** All that came before this was called, and some of what comes meanwhile; never less than before. */
    long came() {
        forgetEnded();
        return came.sum() + sum(SumCell::came);
    }

    /** As {@link #came()}. */
    long went() {
        return went.sum() + sum(SumCell::went);
    }

    /**
     * A thread that has ended is not held, nor what it has loaded. Whoever takes its place sees all it added: it ended before
     * this, and this before the next hold of the lock.
     */
    private void forgetEnded() {
        synchronized (cells) {
            for (SumCell cell : cells) {
                if (cell != null && cell.owner != null && !cell.owner.isAlive()) {
                    cell.owner = null;
                }
            }
        }
    }

    private long sum(ToLongFunction<SumCell> part) {
        long sum = 0;
        for (SumCell cell : cells) {
            if (cell != null) {
                sum += part.applyAsLong(cell);
            }
        }
        return sum;
    }
}
