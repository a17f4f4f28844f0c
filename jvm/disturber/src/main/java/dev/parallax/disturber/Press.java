package dev.parallax.disturber;

/** One way to press. One thread drives it. */
interface Press {
    /**
     * Does some of the work.
     *
     * @param bytes how much
     * @return how much it was, which may be some more, or less when there is no room
     */
    long press(long bytes);

    /** So much has to be due before it is pressed. */
    default long leastBytes() {
        return 1;
    }

    /** How much of the work has to be done by when a steady pace would have done so much. */
    default long due(double bytes) {
        return (long) bytes;
    }

    /** How much is held now. */
    long heldBytes();

    /** What the bytes are. */
    String unit();

    /** Gives all back. Again, it does nothing. */
    void giveBack();

    /** That of a plan. Throws, with a reason for people, where this JVM does not have what it presses. */
    static Press of(Plan plan, Room room) throws Exception {
        return switch (plan.mode()) {
            case FRAGMENTATION -> new HeldArrays(plan, room, HeldArrays.Sizes.RISING);
            case HUMONGOUS -> new HeldArrays(plan, room, HeldArrays.Sizes.HUMONGOUS);
            case ALLOCATION_STALL -> new Bursts(plan, room);
            case TIME_TO_SAFEPOINT -> new Copies(plan, room);
            case METASPACE -> new Classes(plan, room);
            case THREAD_STACKS -> new Stacks(plan, room);
        };
    }
}
