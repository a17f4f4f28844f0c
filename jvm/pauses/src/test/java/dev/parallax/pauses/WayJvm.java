package dev.parallax.pauses;

import java.lang.instrument.Instrumentation;

/** The program of a child JVM that opens the best clock, collects garbage, prints what it has and ends by itself. */
public final class WayJvm {
    private static Instrumentation instrumentation;

    private WayJvm() {
    }

    public static void premain(final String options, final Instrumentation given) {
        instrumentation = given;
    }

    /** Prints the way, the clock's reading of a collection, and why better ways are not used; closes nothing. */
    public static void main(final String[] args) throws Exception {
        final PauseClock clock = PauseClock.open(instrumentation);
        final PauseReading before = clock.read();
        if (clock.way() == PauseClock.Way.FLIGHT_RECORDER) {
            Thread.sleep(1_500);
        }
        System.gc();
        if (clock.way() == PauseClock.Way.FLIGHT_RECORDER) {
            Thread.sleep(2_500);
        }
        System.out.println(clock.way());
        System.out.println(clock.read().since(before).pausedNs());
        clock.notUsed().forEach(System.out::println);
    }
}
