package dev.parallax.disturber;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.concurrent.Semaphore;

/**
 * Copies within one large array, which a thread does not leave before it is done, while another thread requests a
 * safepoint: by looking for deadlocks, the lightest operation that stops all threads.
 */
final class Copies implements Press {
    /** A shorter copy is over before the safepoint begins. */
    private static final int LEAST = 8 << 20;

    private final ThreadMXBean threads = ManagementFactory.getThreadMXBean();
    private final Semaphore asked = new Semaphore(0);
    private final Thread asker = new Thread(this::ask, "parallax-disturber-safepoints");
    private byte[] array;

    Copies(Plan plan, Room room) {
        long bytes = (long) (plan.share() * room.maxBytes());
        array = new byte[(int) Math.max(LEAST, Math.min(1 << 30, bytes))];
        asker.setDaemon(true);
        asker.start();
    }

    @Override
    public String unit() {
        return "copied";
    }

    @Override
    public long leastBytes() {
        return array.length;
    }

    @Override
    public long heldBytes() {
        return array.length;
    }

    @Override
    public long press(long bytes) {
        asked.release();
        System.arraycopy(array, 0, array, 1, array.length - 1);
        return array.length;
    }

    private void ask() {
        try {
            while (true) {
                asked.acquire();
                asked.drainPermits();
                threads.findMonitorDeadlockedThreads();
            }
        } catch (InterruptedException over) {
            // Stopped on request.
        }
    }

    @Override
    public void giveBack() {
        array = new byte[0];
        asker.interrupt();
    }
}
