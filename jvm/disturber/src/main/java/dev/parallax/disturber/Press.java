package dev.parallax.disturber;

/** One kind of work. Used by one thread. */
interface Press {
    /**
     * Does some of the work.
     *
     * @param bytes amount of work
     * @return amount done, which may be a little more, or less if there is no room
     */
    long press(long bytes);

    /** The smallest amount that is worth doing at once. */
    default long leastBytes() {
        return 1;
    }

    /** The amount that must be done by the time a steady pace would have done this many bytes. */
    default long due(double bytes) {
        return (long) bytes;
    }

    /** The bytes held now. */
    long heldBytes();

    /** The meaning of the bytes. */
    String unit();

    /** Releases everything. Repeating it has no effect. */
    void giveBack();

    /** The work of a plan. Throws, with a message for people, if this JVM does not support it. */
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
