package dev.parallax.agent.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.function.ToLongFunction;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Pools of two connections to a Redis that counts its requests. Each time is between what the application's own
 * timestamps enclose and what encloses them, whatever the host does.
 */
class RedisTest {
    @TempDir
    private Path folder;

    /** The caller's own timestamps, from {@link System#nanoTime()}. */
    private record Use(long askedNs, long gotNs, long endsNs, long endedNs) {}

    @Test
    void whoWaitsForAConnectionOfJedisIsDistinguishedFromWhoUsesOne() throws Exception {
        checkThatWaitsAreApart("jedis", "jedis");
    }

    /** Up to version 3 Jedis has a plain pool within its own, with a factory of Jedis. */
    @Test
    void aPlainPoolWithAFactoryOfJedisIsReportedAsJedis() throws Exception {
        checkThatWaitsAreApart("jedis-plain", "jedis");
    }

    @Test
    void whoWaitsForAPooledConnectionOfLettuceIsDistinguishedFromWhoUsesOne() throws Exception {
        checkThatWaitsAreApart("lettuce", "lettuce");
    }

    private void checkThatWaitsAreApart(String kind, String library) throws Exception {
        String pool = "-" + library + "-orders";
        Path record = folder.resolve("record");
        List<Use> uses = run(kind, record, 2);
        assertEquals(6, uses.size());
        List<Double> waits = checkAgainstTheCallers(record, pool, uses);
        // Two came while both connections were lent, and those who had them kept them for as long once they had seen it.
        assertTrue(waits.get(4) >= RedisApplication.KEEP_MS, waits.toString());
        List<Double> timeouts = Logs.ms(record, "db.client.connection.timeouts" + pool);
        assertEquals(1, timeouts.size());
        assertTrue(timeouts.get(0) >= RedisApplication.PATIENCE_MS, timeouts.toString());
        List<Double> makings = Logs.ms(record, "db.client.connection.create_time" + pool);
        assertEquals(2, makings.size());
        // Creating a connection is not waiting for one, although the same caller does both.
        double allMs = sum(uses, use -> use.gotNs - use.askedNs);
        double reported = waits.stream().mapToDouble(ms -> ms).sum() + makings.stream().mapToDouble(ms -> ms).sum();
        assertTrue(reported <= Logs.upTo(allMs), reported + " of " + allMs);
        assertEquals(Set.of(), Logs.sums(record, "db.client.connection.failed").keySet());
    }

    /** Its pool never makes a caller wait for a lent connection. */
    @Test
    void whoGetsNoConnectionOfLettucesAsynchronousPoolIsReportedAsFailed() throws Exception {
        String pool = "-lettuce-async-1";
        Path record = folder.resolve("record");
        List<Use> uses = run("lettuce-async", record, 2);
        assertEquals(4, uses.size());
        checkAgainstTheCallers(record, pool, uses);
        assertEquals(2, Logs.ms(record, "db.client.connection.failed" + pool).size());
        assertEquals(Set.of(), Logs.sums(record, "db.client.connection.timeouts").keySet());
    }

    private List<Use> run(String kind, Path record, int connections) throws Exception {
        try (RedisServer redis = new RedisServer(folder)) {
            AgentJvm.Ended ended = new AgentJvm(folder)
                    .run("log=off,out=" + record, RedisApplication.class, kind, Integer.toString(redis.port()));
            assertEquals("", ended.err());
            List<Use> uses = ended.out().stream().map(RedisTest::use).toList();
            assertEquals(uses.size(), redis.calls("set"), "each use is one command");
            assertEquals(connections, redis.connections());
            return uses;
        }
    }

    private static Use use(String line) {
        long[] ns = Arrays.stream(line.substring("use=".length()).split(",")).mapToLong(Long::parseLong).toArray();
        return new Use(ns[0], ns[1], ns[2], ns[3]);
    }

    /** Returns the waits, sorted. */
    private static List<Double> checkAgainstTheCallers(Path record, String pool, List<Use> uses) throws IOException {
        List<Double> waits = Logs.ms(record, "db.client.connection.wait_time" + pool);
        List<Double> kept = Logs.ms(record, "db.client.connection.use_time" + pool);
        List<Double> mostOfWaits = sorted(uses, use -> use.gotNs - use.askedNs);
        List<Double> leastOfUses = sorted(uses, use -> use.endsNs - use.gotNs);
        List<Double> mostOfUses = sorted(uses, use -> use.endedNs - use.askedNs);
        assertEquals(uses.size(), waits.size());
        assertEquals(uses.size(), kept.size());
        for (int i = 0; i < uses.size(); i++) {
            assertTrue(waits.get(i) <= Logs.upTo(mostOfWaits.get(i)), waits + " of " + mostOfWaits);
            assertTrue(kept.get(i) >= leastOfUses.get(i), kept + " of " + leastOfUses);
            assertTrue(kept.get(i) <= Logs.upTo(mostOfUses.get(i)), kept + " of " + mostOfUses);
        }
        return waits;
    }

    private static List<Double> sorted(List<Use> uses, ToLongFunction<Use> ns) {
        return uses.stream().map(use -> ns.applyAsLong(use) / 1e6).sorted().toList();
    }

    private static double sum(List<Use> uses, ToLongFunction<Use> ns) {
        return uses.stream().mapToLong(ns).sum() / 1e6;
    }
}
