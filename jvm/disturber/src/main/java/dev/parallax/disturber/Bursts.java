package dev.parallax.disturber;

/**
 * Nothing for a while, and then at once more than the heap has room for, next to a set that is held and slow to mark: the
 * room is gone before the collector comes to the end of it.
 */
final class Bursts implements Press {
    private static final int CHUNK = 256 << 10;
    private static final int HEADER = 16;
    private static final int MOST_A_SECOND = 2;

    /** Of what is held, by each burst: who has generations, and marks the young alone, has to mark that much all the same. */
    private static final double RENEWED = 0.5;

    private final Room room;
    private final long target;
    private final double burst;
    private final Chain chain;
    private long made;

    /** Where the compiler cannot see that nobody reads it. */
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

    /** Each burst is due in the middle of the time that it is for, so that all are over by the end. */
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
