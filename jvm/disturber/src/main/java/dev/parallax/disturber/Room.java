package dev.parallax.disturber;

import com.sun.management.GarbageCollectorMXBean;
import com.sun.management.GcInfo;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.lang.management.MemoryUsage;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** How much memory the application leaves free. One thread. */
final class Room {
    /** If more than this share of the heap is in use right after a collection, something is released. */
    private static final double TIGHT = 0.85;

    private static final long LOOK_NS = 20_000_000;

    /** Collectors that always collect the whole heap, with all threads stopped: everything left afterwards is alive. */
    private static final Set<String> WHOLE = Set.of("MarkSweepCompact", "PS MarkSweep", "G1 Old Generation");

    /**
     * Other collectors leave garbage, and count what was allocated in the meantime: it counts as alive only if this
     * many in a row agree.
     */
    private static final int IN_A_ROW = 8;

    private final long maxBytes = Runtime.getRuntime().maxMemory();
    private final Set<String> heapPools = new HashSet<>();
    private final List<GarbageCollectorMXBean> collectors =
            ManagementFactory.getPlatformMXBeans(GarbageCollectorMXBean.class);
    private long lookedNs = System.nanoTime() - LOOK_NS;
    private long judgedEndMs = -1;
    private boolean isTight;
    private int inARow;

    Room() {
        for (MemoryPoolMXBean pool : ManagementFactory.getMemoryPoolMXBeans()) {
            if (pool.getType() == MemoryType.HEAP) {
                heapPools.add(pool.getName());
            }
        }
    }

    long maxBytes() {
        return maxBytes;
    }

    /** Whether live objects leave less than the margin: true once for each collection that finds this. */
    boolean checkTight() {
        long nowNs = System.nanoTime();
        if (nowNs - lookedNs >= LOOK_NS) {
            lookedNs = nowNs;
            boolean isNew = look();
            isTight = isNew || inARow > 0 && isTight;
            return isNew;
        }
        return false;
    }

    /** Whether the last collection left enough to hold more. */
    boolean hasMore() {
        return !isTight;
    }

    private boolean look() {
        GcInfo last = null;
        boolean isWhole = false;
        for (GarbageCollectorMXBean collector : collectors) {
            GcInfo info = collector.getLastGcInfo();
            if (info != null && (last == null || info.getEndTime() > last.getEndTime())) {
                last = info;
                isWhole = WHOLE.contains(collector.getName());
            }
        }
        if (last == null || last.getEndTime() == judgedEndMs) {
            return false;
        }
        judgedEndMs = last.getEndTime();
        long used = 0;
        for (Map.Entry<String, MemoryUsage> pool : last.getMemoryUsageAfterGc().entrySet()) {
            if (heapPools.contains(pool.getKey())) {
                used += pool.getValue().getUsed();
            }
        }
        inARow = used > TIGHT * maxBytes ? inARow + 1 : 0;
        return inARow >= (isWhole ? 1 : IN_A_ROW);
    }
}
