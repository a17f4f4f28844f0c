package dev.parallax.pauses;

import java.lang.instrument.ClassDefinition;
import java.lang.instrument.Instrumentation;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.SynchronousQueue;
import jdk.jfr.Recording;

/**
 * The program of a child JVM: provokes pauses in known ways and prints what its pause clock showed around each.
 * A line is {@code kind begun sync held begun sync held from to}: the reading before, the one after, and when. The line
 * {@code SUM} has, instead of when, the safepoint up to which the clock counts.
 */
public final class ProvokedJvm {
    private static final long NS_PER_MS = 1_000_000;
    /** The array whose copy delays a safepoint, 64 MiB: the copy has no safepoint poll. */
    private static final int COPIED_LONGS = 8 << 20;

    private static volatile Instrumentation instrumentation;
    private static volatile long sink;

    private final PauseClock clock;
    private final Random random;
    private final SynchronousQueue<Runnable> busy = new SynchronousQueue<>();
    private final List<Object> live = new ArrayList<>();
    private volatile boolean isBusy;
    private double loopsPerNs;

    private ProvokedJvm(final PauseClock clock, final long seed) {
        this.clock = clock;
        this.random = new Random(seed);
    }

    public static void premain(final String options, final Instrumentation given) {
        instrumentation = given;
    }

    /** Arguments: way, how many pauses to provoke, seed. By the flight recorder, what it reported follows. */
    public static void main(final String[] args) throws Exception {
        final PauseClock.Way way = PauseClock.Way.valueOf(args[0]);
        final Queue<Pause> reported = new ConcurrentLinkedQueue<>();
        try (PauseClock clock = PauseClock.open(way, instrumentation);
            PauseStream stream = way.isExact() ? null : PauseStream.start(reported::add)) {
            if (stream != null) {
                sampleThreads();
                awaitOneSince(System.nanoTime(), reported);
            }
            final ProvokedJvm provoked = new ProvokedJvm(clock, Long.parseLong(args[2]));
            provoked.run(Integer.parseInt(args[1]));
            if (stream != null) {
                provoked.beLateForLong();
                final long lastId = awaitOneSince(System.nanoTime(), reported).safepointId();
                final RecordedPauseClock recorded = (RecordedPauseClock) clock;
                while (recorded.counted().safepointId() < lastId) {
                    Thread.sleep(10);
                }
                final RecordedPauseClock.Counted counted = recorded.counted();
                System.out.println("SUM" + text(PauseReading.NONE) + text(counted.sum()) + " 0 " + counted.safepointId());
                reported.forEach(pause -> System.out.print(text(pause)));
            }
        }
    }

    /** The JVM reports which thread was late to stop only for threads that are being sampled. */
    private static void sampleThreads() {
        final Recording recording = new Recording();
        recording.enable("jdk.ExecutionSample").withPeriod(Duration.ofMillis(10));
        recording.start();
    }

    /** The recorder delivers events once per second or later, in order: with this pause, all before it are reported. */
    private static Pause awaitOneSince(final long fromNs, final Queue<Pause> reported) throws InterruptedException {
        while (true) {
            dump();
            Thread.sleep(100);
            final Optional<Pause> since = reported.stream().filter(pause -> pause.beginNs() - fromNs >= 0).findFirst();
            if (since.isPresent()) {
                return since.get();
            }
        }
    }

    private static String text(final Pause pause) {
        return "PAUSE " + pause.safepointId() + " " + pause.beginNs() + " " + pause.syncNs() + " " + pause.totalNs()
            + " " + pause.operation() + " " + pause.lastToStop().orElse("-") + " " + pause.collection().orElse("-") + "\n";
    }

    private void run(final int count) throws Exception {
        final Thread other = new Thread(this::beBusy, "busy");
        other.setDaemon(true);
        other.start();
        calibrate();
        for (int n = 0; n < 200_000; n++) {
            live.add(new byte[100]);
        }
        dump();
        final Way[] ways = Way.values();
        final StringBuilder reported = new StringBuilder();
        for (int n = 0; n < count; n++) {
            final Way way = ways[n % ways.length];
            final long began = System.nanoTime();
            final PauseReading before = clock.read();
            provoke(way);
            final PauseReading after = clock.read();
            reported.append(way).append(text(before)).append(text(after))
                .append(' ').append(began).append(' ').append(System.nanoTime()).append('\n');
        }
        System.out.print(reported);
    }

    private static String text(final PauseReading reading) {
        return " " + reading.begun() + " " + reading.syncNs() + " " + reading.heldNs();
    }

    /** How a pause comes about. */
    enum Way { COLLECT, DUMP, LATE_LOOP, LATE_COPY, REDEFINE, ALLOCATE }

    private void provoke(final Way way) throws Exception {
        switch (way) {
            case COLLECT -> System.gc();
            case DUMP -> dump();
            case LATE_LOOP -> late(() -> sink = loop((int) (loopsPerNs * randomLengthNs())));
            case LATE_COPY -> late(ProvokedJvm::copy);
            case REDEFINE -> redefine();
            case ALLOCATE -> allocate();
        }
    }

    /** Evenly over the decades from 0.05 to 500 ms. */
    private long randomLengthNs() {
        return (long) (0.05 * NS_PER_MS * Math.pow(10, 4 * random.nextDouble()));
    }

    private static void dump() {
        sink = ManagementFactory.getThreadMXBean().dumpAllThreads(false, false).length;
    }

    /** A safepoint requested while another thread runs code without a safepoint poll. */
    private void late(final Runnable withoutPoll) throws InterruptedException {
        late(withoutPoll, 0);
    }

    private void late(final Runnable withoutPoll, final long afterMs) throws InterruptedException {
        isBusy = false;
        busy.put(withoutPoll);
        while (!isBusy) {
            Thread.yield();
        }
        Thread.sleep(afterMs);
        dump();
    }

    /** Each long enough to be sampled before the safepoint is requested: from then on the JVM samples no thread. */
    private void beLateForLong() throws InterruptedException {
        for (int n = 0; n < 10; n++) {
            late(() -> sink = loop((int) (loopsPerNs * 200 * NS_PER_MS)), 100);
        }
    }

    private void beBusy() {
        try {
            while (true) {
                final Runnable withoutPoll = busy.take();
                isBusy = true;
                withoutPoll.run();
            }
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static void redefine() throws Exception {
        try (var bytes = ProvokedJvm.class.getResourceAsStream("ProvokedJvm$Redefined.class")) {
            instrumentation.redefineClasses(new ClassDefinition(Redefined.class, bytes.readAllBytes()));
        }
    }

    static final class Redefined {
        private Redefined() {
        }
    }

    private static void allocate() {
        long sum = 0;
        for (int n = 0; n < 64; n++) {
            sum += new byte[256 << 10].length;
        }
        sink = sum;
    }

    private static void copy() {
        final long[] from = Copied.FROM;
        System.arraycopy(from, 0, Copied.TO, 0, from.length);
    }

    private static final class Copied {
        private static final long[] FROM = new long[COPIED_LONGS];
        private static final long[] TO = new long[COPIED_LONGS];
    }

    /** Compiled by C2 without strip mining, a loop that is counted by an int has no poll within. */
    private static long loop(final int rounds) {
        long value = rounds;
        for (int n = 0; n < rounds; n++) {
            value = value * 0x5851f42d4c957f2dL + n;
        }
        return value;
    }

    private void calibrate() {
        for (int n = 0; n < 20_000; n++) {
            sink += loop(1_000);
        }
        final int rounds = 20_000_000;
        final long began = System.nanoTime();
        sink = loop(rounds);
        loopsPerNs = rounds / (double) (System.nanoTime() - began);
    }
}
