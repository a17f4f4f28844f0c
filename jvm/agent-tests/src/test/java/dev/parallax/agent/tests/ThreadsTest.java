package dev.parallax.agent.tests;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.tools.attach.VirtualMachine;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** An agent that starts when no threads are available, and is started again later. */
class ThreadsTest {
    /** The one in which it starts, the meter's, the verdicts', the record's and the endpoint's. */
    private static final int LEAST_THREADS = 5;

    private static final int MOST_THREADS = 20;

    /** In the folder of the record. */
    private static final String THERE_BEFORE = "there before.hlog";

    @TempDir
    private Path folder;

    private Path record;
    private int port;
    private AgentJvm jvm;
    private int asked;

    /**
     * If this fails, a start that failed half way leaves threads, a port or a record behind, or a later one reports
     * each request twice.
     */
    @Test
    void aStartThatFailsLeavesNothingBehindAtWhicheverThreadItDoes() throws Exception {
        try (Group group = new Group();
                Upstream upstream = new Upstream(0)) {
            record = Files.createDirectory(folder.resolve("record"));
            Files.createFile(record.resolve(THERE_BEFORE));
            port = freePort();
            jvm = new AgentJvm(folder)
                    .under(group.command())
                    .with("-XX:+UseSerialGC", "-XX:-UseDynamicNumberOfCompilerThreads")
                    .start(null, ThreadsApplication.class, upstream.url());
            jvm.until("ready");
            // From then on the JVM has its own thread for agents.
            load("nonsense=1");
            int had = 0;
            while (!hasLoaded(group, had)) {
                assertArrayEquals(new String[] {THERE_BEFORE}, record.toFile().list());
                untilNoThreadIsLeft();
                had++;
                assertTrue(had <= MOST_THREADS, jvm.err());
            }
            assertTrue(had >= LEAST_THREADS, had + " threads were enough");
            int before = asked;
            ask();
            ask();
            URI endpoint = URI.create("http://localhost:" + port + "/json");
            assertTrue(new String(endpoint.toURL().openStream().readAllBytes(), UTF_8).contains("jvm.hiccup"));
            jvm.write("end");
            jvm.end();
            String log = "http.client.request.duration-localhost_" + upstream.port() + "_GET_200";
            assertEquals(asked - before, Logs.ms(record, log).size(), "each once");
        }
    }

    /** With at most this many threads; if that is not enough, one line reports it. */
    private boolean hasLoaded(Group group, int threads) throws Exception {
        int said = said().size();
        group.most(group.now() + threads);
        load("log=off,canary=off,causes=off,endpoint=" + port + ",out=" + record);
        group.lift();
        List<String> now = said();
        assertEquals(said + 1, now.size(), jvm.err());
        if (now.get(said).equals("parallax-agent: http://localhost:" + port + "/")) {
            return true;
        }
        assertTrue(now.get(said).startsWith("parallax-agent: off: java.lang.OutOfMemoryError: "), jvm.err());
        return false;
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    private List<String> said() throws IOException {
        return jvm.err().lines().filter(line -> line.startsWith("parallax-agent: ")).toList();
    }

    private void load(String options) throws Exception {
        VirtualMachine machine = VirtualMachine.attach(Long.toString(jvm.pid()));
        machine.loadAgent(AgentJvm.agent().toString(), options);
        machine.detach();
    }

    private void untilNoThreadIsLeft() throws Exception {
        long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (ask() > 0) {
            assertTrue(System.nanoTime() - endNs < 0, "threads are left: " + Files.readString(folder.resolve("out")));
            Thread.sleep(20);
        }
    }

    /** Makes the application send one request to its server, and returns the number of the agent's threads. */
    private long ask() throws Exception {
        String word = "request" + ++asked;
        jvm.write(word);
        jvm.until(word + " ok");
        String line = "threads of " + word + "=";
        return Files.readAllLines(folder.resolve("out")).stream()
                .filter(one -> one.startsWith(line))
                .mapToLong(one -> Long.parseLong(one.substring(line.length())))
                .findFirst()
                .orElseThrow();
    }

    /** A control group that counts threads, of either version. */
    private static final class Group implements AutoCloseable {
        private final Path path = Path.of(
                "/sys/fs/cgroup",
                Files.isDirectory(Path.of("/sys/fs/cgroup/pids")) ? "pids" : "",
                "parallax-agent-threads-" + ProcessHandle.current().pid());

        Group() throws IOException {
            Files.createDirectory(path);
        }

        String[] command() {
            return new String[] {"sh", "-c", "echo $$ > " + path.resolve("cgroup.procs") + " && exec \"$@\"", "sh"};
        }

        int now() throws IOException {
            return Integer.parseInt(Files.readString(path.resolve("pids.current")).trim());
        }

        void most(int threads) throws IOException {
            Files.writeString(path.resolve("pids.max"), Integer.toString(threads));
        }

        void lift() throws IOException {
            Files.writeString(path.resolve("pids.max"), "max");
        }

        @Override
        public void close() throws IOException {
            Files.delete(path);
        }
    }
}
