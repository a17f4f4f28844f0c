package dev.parallax.agent.meter;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.parallax.pauses.PauseReading;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Pauses and wake-ups in simulated time, with a JVM that updates its counters late. */
class PauseAttributionTest {
    private static final long MS = 1_000_000;
    private static final PauseReading START = new PauseReading(7, 70, 700);

    private final List<Raw> reported = new ArrayList<>();
    private final PauseAttribution bookings = new PauseAttribution(START, reported::add);

    private static Raw hiccup(long beginMs, long endMs) {
        return hiccup(beginMs, endMs, 0);
    }

    private static Raw hiccup(long beginMs, long endMs, long runQueueMs) {
        return new Raw(false, beginMs * MS, endMs * MS, 0, 0, 0, runQueueMs * MS, 0, 0);
    }

    private static PauseReading after(PauseReading before, long pauses, long ms) {
        return new PauseReading(before.begun() + pauses, before.syncNs(), before.heldNs() + ms * MS);
    }

    private List<Long> reportedMs() {
        return reported.stream().map(raw -> raw.safepointNs() / MS).toList();
    }

    @Test
    void whatIsNoPauseIsReportedAtOnceAsNone() {
        bookings.late(START, hiccup(0, 10));
        assertEquals(List.of(0L), reportedMs());
    }

    @Test
    void aPauseThatIsBookedLateIsReportedWhenItIs() {
        PauseReading begun = after(START, 1, 0);
        bookings.late(begun, hiccup(0, 10));
        bookings.onTime(begun, 11 * MS);
        assertEquals(List.of(), reportedMs());
        bookings.onTime(after(START, 1, 10), 12 * MS);
        assertEquals(List.of(10L), reportedMs());
    }

    @Test
    void aPauseThatIsNeverBookedIsReportedAllTheSame() {
        PauseReading begun = after(START, 1, 0);
        bookings.late(begun, hiccup(0, 10));
        for (int ms = 11; ms < 100; ms++) {
            bookings.onTime(begun, ms * MS);
        }
        assertEquals(List.of(0L), reportedMs());
    }

    /** If this fails, the second of two collections that follow each other has no cause, or is reported with the first. */
    @Test
    void ofPausesThatFollowEachOtherEachHasItsOwn() {
        // The second is counted when the first one's hiccup is looked into, and begins only then.
        bookings.late(after(START, 1, 0), hiccup(0, 10));
        bookings.late(after(START, 2, 10 + 200), hiccup(11, 211));
        bookings.onTime(after(START, 2, 10 + 200), 212 * MS);
        assertEquals(List.of(10L, 200L), reportedMs());
    }

    /** If this fails, a thread that waited for a CPU is reported to have waited for the collection that came next. */
    @Test
    void whatHadAShortPauseHasNothingOfTheNextOne() {
        bookings.late(after(START, 1, 1), hiccup(0, 10, 9));
        bookings.late(after(START, 2, 1 + 10), hiccup(11, 21));
        bookings.onTime(after(START, 2, 1 + 10), 25 * MS);
        assertEquals(List.of(1L, 10L), reportedMs());
    }

    @Test
    void whatHadAShortPauseHasNothingOfOneThatMadeNoLookLate() {
        bookings.late(after(START, 1, 1), hiccup(0, 10, 9));
        bookings.onTime(after(START, 2, 1 + 1), 11 * MS);
        assertEquals(List.of(1L), reportedMs());
    }

    @Test
    void theEndOfTheSecondPauseInAHiccupIsItsOwnIfNoOtherBegan() {
        bookings.late(after(START, 2, 1), hiccup(0, 10));
        bookings.late(after(START, 2, 1 + 8), hiccup(11, 21));
        bookings.onTime(after(START, 2, 1 + 8), 25 * MS);
        assertEquals(List.of(9L, 0L), reportedMs());
    }

    /** More is counted than the time since can hold. */
    @Test
    void theEndOfTheSecondPauseInAHiccupIsItsOwnIfItCannotBeTheNextOnes() {
        bookings.late(after(START, 2, 1), hiccup(0, 100, 99));
        bookings.late(after(START, 3, 1 + 90 + 10), hiccup(101, 111));
        bookings.onTime(after(START, 3, 1 + 90 + 10), 115 * MS);
        assertEquals(List.of(90L, 10L), reportedMs());
    }

    /** Wake-ups may be as far apart as a second. */
    @Test
    void withCoarseLooksTheFirstOneAfterAHiccupDecides() {
        bookings.late(after(START, 1, 0), hiccup(1000, 1010));
        bookings.onTime(after(START, 1, 0), 2000 * MS);
        assertEquals(List.of(0L), reportedMs());
    }

    @Test
    void whatIsNoPauseHasNothingOfTheNextOne() {
        bookings.late(START, hiccup(0, 50));
        bookings.late(after(START, 1, 20), hiccup(51, 71));
        bookings.onTime(after(START, 1, 20), 72 * MS);
        assertEquals(List.of(0L, 20L), reportedMs());
    }

    @Test
    void theLastOneIsReportedAtTheEnd() {
        bookings.late(after(START, 1, 30), hiccup(0, 30));
        bookings.end(after(START, 1, 30), 30 * MS);
        assertEquals(List.of(30L), reportedMs());
    }

    /** Pauses of any length after gaps of any length, looks a millisecond apart, each counted up to 0.3 ms after its end. */
    @Test
    void noneIsLostAndNoneIsReportedTwice() {
        for (int seed = 0; seed < 200; seed++) {
            reported.clear();
            Simulation simulation = new Simulation(new Random(seed), reported);
            long pausedNs = simulation.run();
            long reportedNs = reported.stream().mapToLong(Raw::safepointNs).sum();
            // The part of each pause before the next wake-up is due is not a hiccup.
            long lostNs = pausedNs - reportedNs;
            if (lostNs < 0 || lostNs > Simulation.PAUSES * MS) {
                throw new AssertionError("seed " + seed + ": " + pausedNs + " ns paused, reported " + reportedNs);
            }
        }
    }

    /** A thread that looks each millisecond, and pauses that stop it. */
    private static final class Simulation {
        static final int PAUSES = 50;
        private final long[] beginNs = new long[PAUSES];
        private final long[] endNs = new long[PAUSES];
        private final long[] bookedNs = new long[PAUSES];
        private final PauseAttribution bookings;

        Simulation(Random random, List<Raw> reported) {
            long now = 0;
            for (int n = 0; n < PAUSES; n++) {
                now += 1 + random.nextLong(random.nextBoolean() ? 300_000 : 20 * MS);
                beginNs[n] = now;
                now += random.nextLong(1, 50 * MS);
                endNs[n] = now;
                // Counted before the next one can begin.
                now += 1 + random.nextLong(300_000);
                bookedNs[n] = now;
            }
            bookings = new PauseAttribution(reading(0), reported::add);
        }

        long run() {
            long dueNs = MS;
            long nowNs = 0;
            while (nowNs < bookedNs[PAUSES - 1] + 30 * MS) {
                nowNs = awake(Math.max(nowNs, dueNs));
                if (nowNs - dueNs >= Meter.LEAST_NS) {
                    bookings.late(reading(nowNs), new Raw(false, dueNs, nowNs, 0, 0, 0, 0, 0, 0));
                } else {
                    bookings.onTime(reading(nowNs), nowNs);
                }
                dueNs += (nowNs - dueNs) / MS * MS + MS;
                nowNs += 50_000;
            }
            long sum = 0;
            for (int n = 0; n < PAUSES; n++) {
                sum += endNs[n] - beginNs[n];
            }
            return sum;
        }

        private long awake(long wantedNs) {
            for (int n = 0; n < PAUSES; n++) {
                if (beginNs[n] <= wantedNs && wantedNs < endNs[n]) {
                    return endNs[n];
                }
            }
            return wantedNs;
        }

        private PauseReading reading(long nowNs) {
            long begun = 0;
            long heldNs = 0;
            for (int n = 0; n < PAUSES; n++) {
                begun += beginNs[n] <= nowNs ? 1 : 0;
                heldNs += bookedNs[n] <= nowNs ? endNs[n] - beginNs[n] : 0;
            }
            return new PauseReading(begun, 0, heldNs);
        }
    }
}
