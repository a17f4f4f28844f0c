package dev.parallax.pauses;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

class ThreadAccountsTest {
    /** If this fails, a starved thread's hiccups are attributed to something else. */
    @Test
    void theRunQueueIsThatOfThisThread() throws IOException {
        try (ThreadAccounts accounts = ThreadAccounts.open()) {
            final long before = own();
            final long read = accounts.runQueueNs().orElseThrow();
            final long after = own();
            assertTrue(before <= read && read <= after, before + " <= " + read + " <= " + after);
        }
    }

    @Test
    void whatThePlatformReportsIsReportedHere() throws IOException {
        final PlatformReading before = Platform.own().read();
        try (ThreadAccounts accounts = ThreadAccounts.open()) {
            final long stolenNs = accounts.stolenNs().orElseThrow();
            assertEquals(before.throttledNs().isPresent(), accounts.throttledNs().isPresent());
            final PlatformReading after = Platform.own().read();
            assertTrue(before.stolenNs().orElseThrow() <= stolenNs && stolenNs <= after.stolenNs().orElseThrow());
        }
    }

    private static long own() throws IOException {
        return Long.parseLong(Files.readString(Path.of("/proc/thread-self/schedstat")).split(" ")[1]);
    }
}
