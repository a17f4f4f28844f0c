package dev.parallax.disturber;

import com.sun.management.HotSpotDiagnosticMXBean;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;

/** Holds arrays, and replaces randomly chosen ones by new ones. */
final class HeldArrays implements Press {
    /** Header of an array in the JVM: 16 bytes with and without compact headers. */
    private static final int HEADER = 16;

    private final Room room;
    private final long target;
    private final Sizes sizes;
    private final long humongous;
    private final SplittableRandom random = new SplittableRandom(1);
    private byte[][] held = new byte[1_024][];
    private int count;
    private long heldBytes;
    private long made;

    /** The sizes of the arrays. */
    enum Sizes {
        /**
         * Each pass over the heap makes larger ones than the last, which do not fit into the gaps left by smaller
         * ones.
         */
        RISING,
        /** So large that a collector allocates each one separately. */
        HUMONGOUS
    }

    HeldArrays(Plan plan, Room room, Sizes sizes) {
        this.room = room;
        this.target = (long) (plan.share() * room.maxBytes());
        this.sizes = sizes;
        this.humongous = humongousBytes(room.maxBytes());
    }

    @Override
    public String unit() {
        return "allocated";
    }

    @Override
    public long heldBytes() {
        return heldBytes;
    }

    @Override
    public long press(long bytes) {
        if (room.checkTight()) {
            dropUntil(heldBytes / 2);
        }
        long done = 0;
        while (done < bytes) {
            byte[] array = new byte[(int) (next() - HEADER)];
            done += array.length + HEADER;
            keep(array);
        }
        return done;
    }

    private long next() {
        made++;
        if (sizes == Sizes.HUMONGOUS) {
            return humongous;
        }
        // From 1 to 5 KB, 64 bytes more after each 4,096: a few megabytes of each size.
        return 1_024 + made / 4_096 % 64 * 64;
    }

    private void keep(byte[] array) {
        long size = array.length + HEADER;
        if (heldBytes + size <= target && room.hasMore()) {
            if (count == held.length) {
                held = Arrays.copyOf(held, count * 2);
            }
            held[count++] = array;
            heldBytes += size;
        } else if (count > 0) {
            int at = random.nextInt(count);
            heldBytes += size - (held[at].length + HEADER);
            held[at] = array;
            dropUntil(target);
        }
    }

    private void dropUntil(long bytes) {
        while (heldBytes > bytes && count > 0) {
            int at = random.nextInt(count);
            heldBytes -= held[at].length + HEADER;
            held[at] = held[--count];
            held[count] = null;
        }
    }

    @Override
    public void giveBack() {
        held = new byte[0][];
        count = 0;
        heldBytes = 0;
    }

    /**
     * G1: above half a region, and slightly less than a whole one, because it occupies a whole one. Shenandoah: above a
     * region. ZGC: above an eighth of a medium page, which is a 32nd of the heap and at most 32 MB. Others: a megabyte,
     * which does not suit their young generations.
     */
    private static long humongousBytes(long maxBytes) {
        long mb = 1 << 20;
        if (isOn("UseG1GC")) {
            return Math.max(mb, number("G1HeapRegionSize")) / 16 * 15;
        }
        if (isOn("UseShenandoahGC")) {
            long region = Math.min(32 * mb, Math.max(mb / 4, Long.highestOneBit(maxBytes / 2_048)));
            return Math.max(region, number("ShenandoahRegionSize")) * 2 / 16 * 15;
        }
        if (isOn("UseZGC")) {
            return Math.min(32 * mb, Math.max(4 * mb, Long.highestOneBit(maxBytes / 32))) / 8 + mb / 16;
        }
        return mb;
    }

    private static boolean isOn(String option) {
        return option(option).equals("true");
    }

    private static long number(String option) {
        String text = option(option);
        return text.matches("[0-9]{1,18}") ? Long.parseLong(text) : 0;
    }

    private static String option(String name) {
        List<HotSpotDiagnosticMXBean> beans = ManagementFactory.getPlatformMXBeans(HotSpotDiagnosticMXBean.class);
        try {
            return beans.isEmpty() ? "" : beans.get(0).getVMOption(name).getValue();
        } catch (IllegalArgumentException absent) {
            return "";
        }
    }
}
