package dev.parallax.agent.tests;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.parallax.pauses.Corrected;
import dev.parallax.pauses.CorrectedSeries;
import dev.parallax.pauses.PauseClock;
import dev.parallax.pauses.PauseTally;
import dev.parallax.pauses.Starts;
import dev.parallax.recorder.Durations;
import dev.parallax.recorder.Recorder;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collections;
import java.util.Random;
import java.util.concurrent.Executors;
import java.util.stream.Stream;

/**
 * A loop of some 20 ms of work that times itself, over and over; a server that does the same work for external
 * requests; and optionally a thread that makes garbage. {@code /end} reports what happened since {@code /begin}.
 */
public final class LoopApplication {
    private static final long WORK_NS = 20_000_000;
    private static final int READ_EVERY_MS = 20;
    private static final int GARBAGE_BYTES = 1 << 20;
    /** What the application lives of, strewn over the heap: a collection of the whole has to find each. */
    private static final int HELD = 20_000_000;
    /** Shorter ones are lost in the work. */
    private static final long LONG_PAUSE_NS = 5 * WORK_NS;

    private static volatile long sink;
    private static volatile byte[] garbage;
    private static Object[] held;

    private final int rounds;
    private Recorder recorder = new Recorder();
    private PauseTally tally;
    private CorrectedSeries series;
    private Corrected corrected;
    private Durations before;
    private long longestNs;
    private long longPauses;
    private long readNs;

    private LoopApplication(int rounds) {
        this.rounds = rounds;
    }

    /** With any argument, garbage is made. */
    public static void main(String[] args) throws Exception {
        // It writes a response in two parts, and the second would wait for the client to acknowledge the first: 40 ms.
        System.setProperty("sun.net.httpserver.nodelay", "true");
        held = Stream.generate(Object::new).limit(HELD).toArray();
        Collections.shuffle(Arrays.asList(held), new Random(1));
        System.gc();
        LoopApplication loop = new LoopApplication(roundsOf(WORK_NS));
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.setExecutor(Executors.newSingleThreadExecutor());
        Recorder outside = new Recorder();
        server.createContext("/work", exchange -> {
            sink = timed(outside, loop.rounds);
            answer(exchange, "done");
        });
        server.createContext("/begin", exchange -> answer(exchange, loop.begin()));
        server.createContext("/end", exchange -> {
            answer(exchange, loop.end());
            System.exit(0);
        });
        server.start();
        System.out.println(server.getAddress().getPort());
        System.out.println("ready");
        daemon(() -> {
            while (true) {
                sink = timed(loop.recorder, loop.rounds);
            }
        });
        if (args.length > 0) {
            daemon(() -> {
                while (true) {
                    garbage = new byte[GARBAGE_BYTES];
                    sleep(1);
                }
            });
        }
        while (true) {
            sleep(READ_EVERY_MS);
            loop.read();
        }
    }

    /**
     * Neither the loop, which is counted, nor what is between it and the stamps lets the JVM stop: so it stops before and
     * after, and the time within does not show it.
     */
    private static long timed(Recorder recorder, int rounds) {
        long startNs = System.nanoTime();
        long sum = startNs;
        for (int n = 0; n < rounds; n++) {
            sum += sum >>> 3 ^ n;
        }
        recorder.record(startNs, System.nanoTime());
        return sum;
    }

    /** From the fastest run: other programs and the compiler make it slower, and nothing makes it faster than it is. */
    private static int roundsOf(long ns) {
        int rounds = 1_000_000;
        long leastNs = Long.MAX_VALUE;
        for (int n = 0; n < 200; n++) {
            long startNs = System.nanoTime();
            sink = timed(new Recorder(), rounds);
            leastNs = Math.min(leastNs, System.nanoTime() - startNs);
        }
        return (int) (rounds * (double) ns / leastNs);
    }

    private synchronized String begin() {
        tally = new PauseTally(PauseClock.open());
        before = recorder.total();
        series = new CorrectedSeries(recorder, Starts.WHEN_FREE);
        corrected = null;
        longestNs = 0;
        longPauses = 0;
        readNs = System.nanoTime();
        return "begun";
    }

    private synchronized void read() {
        if (series == null) {
            return;
        }
        long[] pausesNs = tally.take();
        longestNs = Math.max(longestNs, Arrays.stream(pausesNs).max().orElse(0));
        longPauses += Arrays.stream(pausesNs).filter(pauseNs -> pauseNs >= LONG_PAUSE_NS).count();
        long nowNs = System.nanoTime();
        Corrected latest = series.read(nowNs - readNs, pausesNs);
        readNs = nowNs;
        corrected = corrected == null ? latest : corrected.plus(latest);
    }

    private synchronized String end() {
        read();
        Durations naive = recorder.total().since(before);
        return String.join(
                "\n",
                "operations=" + naive.count(),
                "naive_max_ns=" + naive.maxNs().orElse(0),
                "longest_pause_ns=" + longestNs,
                "long_pauses=" + longPauses,
                "added=" + Math.round(corrected.added()),
                "p99_ns=" + corrected.quantileNs(0.99).orElse(0),
                "max_ns=" + corrected.maxNs().orElse(0),
                "");
    }

    private static void answer(HttpExchange exchange, String text) throws IOException {
        byte[] body = text.getBytes(StandardCharsets.US_ASCII);
        exchange.sendResponseHeaders(200, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }

    private static void daemon(Runnable task) {
        Thread thread = new Thread(task);
        thread.setDaemon(true);
        thread.start();
    }

    private static void sleep(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
