package dev.parallax.disturber;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.lang.ref.WeakReference;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.SplittableRandom;

/**
 * One long chain, whose newest link leads to all others: however many threads a collector has, only one can follow it,
 * and each link is a wait for memory, because neighbours in the chain are not neighbours in the heap. The oldest links
 * are dropped. One thread.
 */
final class Chain {
    /** With less, marking takes so long that hardly any rate is left; with more, it does not take long enough. */
    private static final int BALLAST = 752;

    private static final int LEAST_LINKS = 256;
    private static final int STRETCHES = 128;
    private static final int TO_CALIBRATE = 1_024;

    private static final class Link {
        private final byte[] ballast = new byte[BALLAST];
        private Link next;
    }

    private final SplittableRandom random = new SplittableRandom(1);
    private final long linkBytes;

    /** The newest ones, in random order, not yet part of the chain. */
    private final Link[] loose;
    private int count;
    private Link newest;

    /**
     * The last link of each segment, the oldest first. Weak references: a collector would find other ways into the
     * chain.
     */
    private final Deque<WeakReference<Link>> lasts = new ArrayDeque<>();

    Chain(long bytes) {
        linkBytes = calibrate();
        loose = new Link[(int) Math.max(LEAST_LINKS, bytes / STRETCHES / linkBytes)];
    }

    /**
     * From the JVM's own account, because object layout is up to the JVM. Without that account, the smallest
     * possible size.
     */
    private long calibrate() {
        ThreadMXBean threads = ManagementFactory.getPlatformMXBean(ThreadMXBean.class);
        long id = Thread.currentThread().getId();
        newest = new Link();
        long before = threads.getThreadAllocatedBytes(id);
        for (int n = 0; n < TO_CALIBRATE; n++) {
            newest = new Link();
        }
        long bytes = threads.getThreadAllocatedBytes(id) - before;
        newest = null;
        return Math.max(BALLAST, bytes / TO_CALIBRATE);
    }

    long bytes() {
        return ((long) lasts.size() * loose.length + count) * linkBytes;
    }

    /** The number of bytes dropped at a time. */
    long stretchBytes() {
        return loose.length * linkBytes;
    }

    /** Adds one link, and returns its size in bytes. */
    long grow() {
        int at = random.nextInt(count + 1);
        loose[count] = loose[at];
        loose[at] = new Link();
        count++;
        if (count == loose.length) {
            for (Link link : loose) {
                link.next = newest;
                newest = link;
            }
            lasts.add(new WeakReference<>(loose[0]));
            Arrays.fill(loose, null);
            count = 0;
        }
        return linkBytes;
    }

    void drop() {
        lasts.clear();
        newest = null;
        Arrays.fill(loose, null);
        count = 0;
    }

    /** Drops the oldest segments until at most this much is left. */
    void shrinkTo(long bytes) {
        while (bytes() > bytes && !lasts.isEmpty()) {
            lasts.remove();
            if (lasts.isEmpty()) {
                newest = null;
            } else {
                lasts.peek().get().next = null;
            }
        }
    }
}
