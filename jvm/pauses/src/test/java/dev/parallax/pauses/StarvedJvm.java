package dev.parallax.pauses;

/** The program of a child JVM that wants a CPU and shares it: prints what its clocks and the platform showed. */
public final class StarvedJvm {
    private static final long LENGTH_NS = 2_000_000_000;

    private StarvedJvm() {
    }

    /** Prints the readings of the counters before and after, the pauses a sampler saw, and the wait for a CPU. */
    public static void main(final String[] args) throws Exception {
        final Platform platform = Platform.own();
        try (PauseClock counters = PauseClock.open(PauseClock.Way.COUNTERS_FILE, null);
            PauseClock sampler = PauseClock.open(PauseClock.Way.SAMPLER, null)) {
            spin(LENGTH_NS / 4);
            final PlatformReading platformBefore = platform.read();
            final PauseReading sampledBefore = sampler.read();
            final PauseReading before = counters.read();
            spin(LENGTH_NS);
            final PauseReading after = counters.read();
            final PauseReading sampled = sampler.read().since(sampledBefore);
            final PlatformReading.Loss loss = platform.read().since(platformBefore);
            System.out.println(before.begun() + " " + after.begun() + " " + after.since(before).pausedNs()
                + " " + sampled.pausedNs() + " " + loss.runQueueNs().orElseThrow());
        }
    }

    private static void spin(final long lengthNs) {
        final long began = System.nanoTime();
        while (System.nanoTime() - began < lengthNs) {
            Thread.onSpinWait();
        }
    }
}
