package dev.parallax.disturber;

/**
 * Nothing for a while, and then more at once than the heap has room for, besides a set of live objects that is slow to
 * mark: the heap is full before the collector has finished marking.
 */
final class Bursts implements Press {
    private static final int CHUNK = 256 << 10;
    private static final int HEADER = 16;
    private static final int MOST_A_SECOND = 2;

    /**
     * Share of the held memory that each burst renews: a generational collector marks only the young part, so it
     * must mark this much, too.
     */
    private static final double RENEWED = 0.5;

    private final Room room;
    private final long target;
    private final double burst;
    private final Chain chain;
    private long made;

    /** Prevents the compiler from seeing that the value is never read. */
    private volatile byte[] garbage;

    Bursts(Plan plan, Room room) {
        this.room = room;
        this.target = (long) (plan.share() * room.maxBytes());
        this.chain = new Chain(target);
        double all = plan.bytesPerSecond() * (plan.length().toNanos() / 1e9);
        double least = Math.max(plan.bytesPerSecond() / (double) MOST_A_SECOND, room.maxBytes());
        this.burst = all / Math.max(1, Math.floor(all / least));
    }

    @Override
    public String unit() {
        return "allocated";
    }

    /** Each burst is due in the middle of its time slot, so that all are over by the end. */
    @Override
    public long due(double bytes) {
        return (long) (Math.floor(bytes / burst + 0.5) * burst);
    }

    @Override
    public long heldBytes() {
        return chain.bytes();
    }

    @Override
    public long press(long bytes) {
        if (room.checkTight()) {
            chain.shrinkTo(chain.bytes() / 2);
        }
        long most = room.hasMore() ? target : Math.min(target, chain.bytes());
        long done = 0;
        while (done < bytes) {
            if (chain.bytes() + chain.stretchBytes() < most || (made + done) % burst < RENEWED * most) {
                done += chain.grow();
                chain.shrinkTo(most);
            } else {
                garbage = new byte[CHUNK - HEADER];
                done += CHUNK;
            }
        }
        made += done;
        return done;
    }

    @Override
    public void giveBack() {
        chain.drop();
        garbage = null;
    }
}
