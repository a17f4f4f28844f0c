package dev.parallax.disturber;

import com.sun.management.ThreadMXBean;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.management.ManagementFactory;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.locks.LockSupport;

/** Virtual threads that wait at the bottom of a deep stack, replaced by others over time. */
final class Stacks implements Press {
    private static final int DEPTH = 200;
    private static final int TO_CALIBRATE = 512;
    private static final int BATCHES = 3;
    private static final long SETTLE_MS = 50;

    private final MethodHandle start;
    private final MethodHandle allocated;
    private final Room room;
    private final Deque<Thread> held = new ArrayDeque<>();
    private final long target;
    private final long each;
    private volatile boolean isOver;

    Stacks(Plan plan, Room room) throws Exception {
        try {
            MethodHandles.Lookup lookup = MethodHandles.publicLookup();
            start = lookup.findStatic(
                    Thread.class, "startVirtualThread", MethodType.methodType(Thread.class, Runnable.class));
            allocated = lookup.findVirtual(
                    ThreadMXBean.class, "getTotalThreadAllocatedBytes", MethodType.methodType(long.class));
            start.invoke((Runnable) () -> {});
        } catch (Throwable absent) {
            throw new UnsupportedOperationException("this JVM has no virtual threads");
        }
        this.room = room;
        this.target = (long) (plan.share() * room.maxBytes());
        this.each = calibrate();
    }

    /** What the JVM allocates for one; other threads allocate as well, so this is the minimum of some batches. */
    private long calibrate() throws InterruptedException {
        long least = Long.MAX_VALUE;
        for (int batch = 0; batch < BATCHES; batch++) {
            long before = allocated();
            for (int n = 0; n < TO_CALIBRATE; n++) {
                held.add(begin());
            }
            Thread.sleep(SETTLE_MS);
            least = Math.min(least, (allocated() - before) / TO_CALIBRATE);
            drop(0);
        }
        return Math.max(1_024, least);
    }

    private long allocated() {
        try {
            return (long) allocated.invoke(ManagementFactory.getPlatformMXBean(ThreadMXBean.class));
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    private Thread begin() {
        try {
            return (Thread) start.invoke((Runnable) () -> descend(DEPTH));
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    private long descend(int depth) {
        if (depth > 0) {
            return descend(depth - 1) + depth;
        }
        while (!Thread.currentThread().isInterrupted() && !isOver) {
            LockSupport.park();
        }
        return 0;
    }

    @Override
    public String unit() {
        return "of stacks";
    }

    @Override
    public long leastBytes() {
        return each;
    }

    @Override
    public long heldBytes() {
        return held.size() * each;
    }

    @Override
    public long press(long bytes) {
        if (room.checkTight()) {
            drop(held.size() / 2);
        }
        long done = 0;
        while (done < bytes) {
            held.add(begin());
            done += each;
            drop((int) (target / each));
        }
        return done;
    }

    private void drop(int left) {
        while (held.size() > left) {
            held.poll().interrupt();
        }
    }

    @Override
    public void giveBack() {
        isOver = true;
        drop(0);
    }
}
