package dev.parallax.suites.httpclient5;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.parallax.suites.Eventually;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.hc.core5.http.ConnectionRequestTimeoutException;
import org.apache.hc.core5.io.CloseMode;
import org.apache.hc.core5.pool.PoolConcurrencyPolicy;
import org.apache.hc.core5.util.TimeValue;
import org.apache.hc.core5.util.Timeout;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

/** Who gets a connection and when, and how long it lives. */
@ParameterizedClass
@MethodSource("dev.parallax.suites.httpclient5.Arm$Way#here")
class PoolTest {
    /** Without the experimental one. */
    private static final List<PoolConcurrencyPolicy> POLICIES =
            List.of(PoolConcurrencyPolicy.STRICT, PoolConcurrencyPolicy.LAX);

    private final Settings settings = new Settings();
    private volatile CountDownLatch release = new CountDownLatch(1);
    private Server server;
    private Server elsewhere;

    @Parameter
    private Arm.Way way;

    @BeforeEach
    void open() throws IOException {
        server = new Server(this::answer);
        elsewhere = new Server(this::answer);
    }

    @AfterEach
    void close() throws IOException {
        release.countDown();
        server.close();
        elsewhere.close();
    }

    private void answer(Server.Exchange exchange) throws IOException, InterruptedException {
        if (exchange.target.equals("/slow")) {
            release.await(20, TimeUnit.SECONDS);
        }
        if (exchange.target.equals("/last")) {
            exchange.send(200, "ok", "Connection: close");
            exchange.end();
        } else {
            exchange.send(200, "ok");
        }
    }

    @Test
    void aConnectionIsKeptForTheNextCall() throws Exception {
        try (Rig rig = rig()) {
            for (int n = 0; n < 3; n++) {
                assertEquals("200 ok", rig.get(server.url("/")));
                idle(rig, 1);
            }
            assertEquals(1, server.connections.get());
            rig.reported(server, "{calls=3, connects=1, requests=3, waits=3}");
        }
    }

    /** The asynchronous client's pool reports him when it looks the next time: when a connection comes back, or is gone. */
    @Test
    void whoWaitsLongerThanHeWantedIsReportedSo() throws Exception {
        for (PoolConcurrencyPolicy policy : POLICIES) {
            settings.maxPerRoute = 1;
            settings.patience = Timeout.ofMilliseconds(150);
            try (Server holding = new Server(this::answer);
                    Rig rig = new Rig(way, settings.with(policy), holding, server)) {
                Rig.Going holder = hold(rig, holding);
                long askedNs = System.nanoTime();
                Rig.Going waiter = rig.start("GET", holding.url("/"), null);
                if (way.isAsync()) {
                    Thread.sleep(200);
                } else {
                    assertThrows(ConnectionRequestTimeoutException.class, waiter::end, policy.name());
                    assertTrue(System.nanoTime() - askedNs >= 149_000_000, "not before its time");
                }
                // Another route has its own connections.
                assertEquals("200 ok", rig.get(server.url("/")));
                release.countDown();
                assertEquals("200 ok", holder.end());
                Class<? extends Exception> reported =
                        way.isAsync() ? TimeoutException.class : ConnectionRequestTimeoutException.class;
                assertThrows(reported, waiter::end, policy.name());
                idle(rig, 2);
                assertEquals("200 ok", rig.get(holding.url("/")));
                rig.reported(holding, "{calls=2, calls failed=1, connects=1, failed=1, requests=2, waits=2}");
                rig.reported(server, "{calls=1, connects=1, requests=1, waits=1}");
            }
            // Of each policy its own account.
            release = new CountDownLatch(1);
            server.close();
            server = new Server(this::answer);
        }
    }

    private static Rig.Going hold(Rig rig, Server at) {
        int before = at.requests.get();
        Rig.Going holder = rig.start("GET", at.url("/slow"), null);
        Eventually.until("it is held", () -> at.requests.get() == before + 1);
        return holder;
    }

    @Test
    void aRouteHasNoMoreThanItMay() throws Exception {
        for (PoolConcurrencyPolicy policy : POLICIES) {
            settings.maxPerRoute = 2;
            try (Server busy = new Server(exchange -> {
                        Thread.sleep(20);
                        exchange.send(200, "ok");
                    });
                    Rig rig = new Rig(way, settings.with(policy), busy)) {
                atOnce(rig, busy, 6, 2);
                assertTrue(busy.most.get() <= 2, policy + " at once: " + busy.most);
                assertTrue(busy.connections.get() <= 2, policy + " connections: " + busy.connections);
                rig.reported(busy, "{calls=12, connects=" + busy.connections + ", requests=12, waits=12}");
            }
        }
    }

    /** Of the strict pool, which is the one that counts all together. */
    @Test
    void aPoolHasNoMoreThanItMayInAll() throws Exception {
        settings.maxTotal = 2;
        try (Rig rig = rig()) {
            Rig.Going first = hold(rig, server);
            Rig.Going second = hold(rig, server);
            Rig.Going third = rig.start("GET", elsewhere.url("/"), null);
            Eventually.until("it waits", () -> rig.pool.getTotalStats().getPending() == 1);
            assertEquals(0, elsewhere.requests.get());
            release.countDown();
            assertEquals("200 ok", first.end());
            assertEquals("200 ok", second.end());
            // One that is idle at another route is given up for it.
            assertEquals("200 ok", third.end());
            idle(rig, 2);
            rig.reported(server, "{calls=2, connects=2, requests=2, waits=2}");
            rig.reported(elsewhere, "{calls=1, connects=1, requests=1, waits=1}");
        }
    }

    @Test
    void aStormIsServedToTheLast() throws Exception {
        settings.maxPerRoute = 3;
        try (Rig rig = rig()) {
            atOnce(rig, server, 8, 40);
            assertTrue(server.connections.get() <= 3, "connections: " + server.connections);
            rig.reported(server, "{calls=320, connects=" + server.connections + ", requests=320, waits=320}");
        }
    }

    private static void atOnce(Rig rig, Server at, int callers, int calls) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(callers);
        try {
            List<Future<?>> all = new ArrayList<>();
            for (int i = 0; i < callers; i++) {
                all.add(threads.submit(() -> {
                    for (int n = 0; n < calls; n++) {
                        assertEquals("200 ok", rig.get(at.url("/")));
                    }
                    return null;
                }));
            }
            for (Future<?> one : all) {
                one.get();
            }
        } finally {
            threads.shutdown();
        }
    }

    @Test
    void whatOutlivedItsTimeIsReplaced() throws Exception {
        settings.timeToLive = TimeValue.ofMilliseconds(50);
        checkThatItIsNotKept(100);
    }

    /** Two calls with a pause between, on two connections. */
    private void checkThatItIsNotKept(int pauseMs) throws Exception {
        try (Rig rig = rig()) {
            rig.get(server.url("/"));
            rig.rest();
            Thread.sleep(pauseMs);
            rig.get(server.url("/"));
            rig.rest();
            assertEquals(2, server.connections.get());
            rig.reported(server, "{calls=2, connects=2, requests=2, waits=2}");
        }
    }

    @Test
    void whatTheServerClosedWhileItWasIdleIsReplaced() throws Exception {
        settings.validateAfter = TimeValue.ZERO_MILLISECONDS;
        try (Rig rig = rig()) {
            rig.get(server.url("/"));
            idle(rig, 1);
            server.endConnections();
            if (way.isAsync()) {
                Eventually.until("the client has noticed", () -> server.open() == 0);
            } else {
                // It checks when the connection is requested. Wait for the end to arrive: without it there is nothing
                // to see.
                Thread.sleep(100);
            }
            assertEquals("200 ok", rig.get(server.url("/")));
            assertEquals(2, server.connections.get());
            rig.reported(server, "{calls=2, connects=2, requests=2, waits=2}");
        }
    }

    @Test
    void whatIsIdleForTooLongIsEvicted() throws Exception {
        settings.evictIdleAfter = TimeValue.ofMilliseconds(10);
        try (Rig rig = rig()) {
            rig.get(server.url("/"));
            rig.rest();
            Eventually.until("it is evicted", () -> rig.pool.getTotalStats().getAvailable() == 0);
            rig.get(server.url("/"));
            rig.rest();
            rig.reported(server, "{calls=2, connects=2, requests=2, waits=2}");
        }
    }

    @Test
    void anApplicationMayKeepNoConnection() throws Exception {
        settings.reuse = (request, response, context) -> false;
        try (Rig rig = rig()) {
            rig.get(server.url("/"));
            rig.rest();
            rig.get(server.url("/"));
            rig.rest();
            Eventually.until("none is left", () -> rig.pool.getTotalStats().getAvailable() == 0);
            assertEquals(2, server.connections.get());
            rig.reported(server, "{calls=2, connects=2, requests=2, waits=2}");
        }
    }

    @Test
    void anApplicationMaySayForHowLongAConnectionIsKept() throws Exception {
        settings.keepAlive = (response, context) -> TimeValue.ofMilliseconds(50);
        checkThatItIsNotKept(100);
    }

    @Test
    void aServerMaySayThatItWasTheLast() throws Exception {
        try (Rig rig = rig()) {
            assertEquals("200 ok", rig.get(server.url("/last")));
            rig.rest();
            assertEquals("200 ok", rig.get(server.url("/")));
            assertEquals(2, server.connections.get());
            rig.reported(server, "{calls=2, connects=2, requests=2, waits=2}");
        }
    }

    /** A waiting caller that is cancelled takes no connection: the next in line gets it. */
    @Test
    void whoIsCancelledWhileHeWaitsTakesNothingAlong() throws Exception {
        settings.maxPerRoute = 1;
        try (Rig rig = rig()) {
            Rig.Going holder = hold(rig, server);
            Rig.Going cancelled = rig.start("GET", server.url("/"), null);
            Eventually.until("one waits", () -> rig.pool.getTotalStats().getPending() == 1);
            Rig.Going next = rig.start("GET", server.url("/"), null);
            Eventually.until("two wait", () -> rig.pool.getTotalStats().getPending() == 2);
            cancelled.cancel();
            assertThrows(Exception.class, cancelled::end);
            release.countDown();
            assertEquals("200 ok", holder.end());
            assertEquals("200 ok", next.end());
            idle(rig, 1);
            assertEquals(1, server.connections.get());
            rig.reported(server, "{calls=2, calls failed=1, connects=1, failed=1, requests=2, waits=2}");
        }
    }

    @Test
    void aClientThatIsClosedServesNobody() throws Exception {
        try (Rig rig = rig()) {
            rig.get(server.url("/"));
            rig.rest();
            rig.close(CloseMode.GRACEFUL);
            assertThrows(Exception.class, () -> rig.get(server.url("/")));
            assertEquals(1, server.requests.get());
        }
    }

    private Rig rig() {
        return new Rig(way, settings, server, elsewhere);
    }

    /** This many are kept, and none is lent. */
    private static void idle(Rig rig, int connections) {
        Eventually.until(
                connections + " idle",
                () -> rig.pool.getTotalStats().getAvailable() == connections
                        && rig.pool.getTotalStats().getLeased() == 0);
    }
}
