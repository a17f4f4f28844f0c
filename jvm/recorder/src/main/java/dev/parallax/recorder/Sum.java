package dev.parallax.recorder;

import java.util.concurrent.atomic.LongAdder;
import java.util.function.ToLongFunction;

/**
 * Two sums, of additions and of subtractions, that any number of threads add to: a platform thread in a cell of its own
 * with a load and a store, others in a shared adder.
 *
 * <p>A cell is given to the first thread whose id maps to its slot, and to another once that thread has ended: after
 * {@link Thread#isAlive()} returned false, which everything it added happens before (JLS 17.4.4). Cells never decrease,
 * so a reader adds them up regardless of their owners.
 */
final class Sum {
    private static final int CELLS = Integer.highestOneBit(2 * Recorder.OWNED_MAX - 1);

    private final SumCell[] cells = new SumCell[CELLS];
    private final LongAdder added = new LongAdder();
    private final LongAdder removed = new LongAdder();

    /** Never has an owner or a value: every caller is redirected to {@link #add}. */
    private final SumCell unowned = new SumCell.Padded(this);

    /** @param amount negative amounts are added to the subtractions */
    void add(long amount) {
        Thread thread = Thread.currentThread();
        SumCell cell = own(thread);
        if (cell != null) {
            cell.addOwn(amount);
        } else if (amount >= 0) {
            added.add(amount);
        } else {
            removed.add(-amount);
        }
    }

    ThreadHandle threadHandle() {
        SumCell cell = own(Thread.currentThread());
        return cell != null ? cell : unowned;
    }

    /** Returns null if the thread is virtual or its slot belongs to another thread. */
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
                cells[at] = new SumCell.Padded(this);
            }
            cells[at].owner = thread;
            return cells[at];
        }
    }

    /** Without the lock, a new cell may seem to have no owner yet. */
    private static boolean isTaken(SumCell cell) {
        Thread owner = cell == null ? null : cell.owner;
        return owner != null && owner.isAlive();
    }

    /** All additions made before this call and some made in the meantime; never less than before. */
    long added() {
        forgetEnded();
        return added.sum() + sum(SumCell::added);
    }

    /** Like {@link #added()}, for subtractions. */
    long removed() {
        return removed.sum() + sum(SumCell::removed);
    }

    /**
     * Releases ended threads and the classes they hold. A thread that takes over a cell sees everything added to it:
     * its previous owner ended before this, and this happens before the next acquisition of the lock.
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
