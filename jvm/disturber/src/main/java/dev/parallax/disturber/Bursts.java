package dev.parallax.disturber;

import java.util.ArrayList;
import java.util.List;

/** Garbage: nothing for a while, and then all that was due at once, beside a set that is held. */
final class Bursts implements Press {
    private static final int CHUNK = 256 << 10;
    private static final int HEADER = 16;
    private static final int BURSTS_A_SECOND = 2;

    private final Room room;
    private final long target;
    private final long burst;
    private final List<byte[]> held = new ArrayList<>();

    /** Where the compiler cannot see that nobody reads it. */
    private volatile byte[] garbage;

    Bursts(Plan plan, Room room) {
        this.room = room;
        this.target = (long) (plan.share() * room.maxBytes());
        this.burst = plan.bytesPerSecond() / BURSTS_A_SECOND;
    }

    @Override
    public String unit() {
        return "allocated";
    }

    @Override
    public long leastBytes() {
        return burst;
    }

    @Override
    public long heldBytes() {
        return (long) held.size() * CHUNK;
    }

    @Override
    public long press(long bytes) {
        if (room.isTight()) {
            held.subList(held.size() / 2, held.size()).clear();
        }
        long done = 0;
        while (done < bytes) {
            byte[] made = new byte[CHUNK - HEADER];
            done += CHUNK;
            if (heldBytes() + CHUNK <= target && room.hasMore()) {
                held.add(made);
            } else {
                garbage = made;
            }
        }
        return done;
    }

    @Override
    public void giveBack() {
        held.clear();
        garbage = null;
    }
}
