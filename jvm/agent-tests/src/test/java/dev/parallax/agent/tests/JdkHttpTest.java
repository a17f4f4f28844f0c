package dev.parallax.agent.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class JdkHttpTest {
    private static final int DELAY_MS = 150;
    private static final int WORK_MS = 2_000;

    @TempDir
    private Path folder;

    /**
     * The server's own count is the true number of requests. Their times are between what the server slept and what the
     * callers saw, whatever the host does.
     */
    @Test
    void requestsAreReportedByMethodAndStatusAsTheServerAndTheCallersSawThem() throws Exception {
        Path record = folder.resolve("record");
        try (Upstream upstream = new Upstream(DELAY_MS)) {
            AgentJvm.Ended ended = new AgentJvm(folder)
                    .run("log=off,instrument=jdkhttp,out=" + record, JdkHttpApplication.class,
                            upstream.url(), "http://localhost:" + closedPort() + "/", Integer.toString(WORK_MS));
            assertEquals("", ended.err());
            assertEquals(Map.of("GET 200", 2, "GET 201", 3, "GET 404", 1, "POST 200", 1), upstream.answers());
            String server = "http.client.request.duration-localhost_" + upstream.port() + "_";
            for (Map.Entry<String, List<Double>> seen : seen(ended).entrySet()) {
                List<Double> reported = Logs.ms(record, server + seen.getKey().replace(' ', '_'));
                assertEquals(seen.getValue().size(), reported.size(), seen.getKey());
                for (int i = 0; i < reported.size(); i++) {
                    assertTrue(reported.get(i) >= DELAY_MS, seen + " " + reported);
                    assertTrue(reported.get(i) <= Logs.upTo(seen.getValue().get(i)), seen + " " + reported);
                }
            }
            assertEquals(7, Logs.ms(record, "http.client.request.duration").size(), "and no others");
        }
        String failed = "http.client.request.failed-localhost_";
        assertEquals(
                Set.of("GET_connect_refused 1", "GET_request_timeout 1", "GET_cancelled 1"),
                Logs.sums(record, failed).keySet().stream()
                        .map(log -> log.replaceFirst("^[0-9]+_", "") + " " + counted(record, failed + log))
                        .collect(Collectors.toSet()));
        // What cannot be reported is not there: not as zero, not as something else.
        assertEquals(Set.of(), Logs.sums(record, "http.client.connection").keySet());
    }

    private static int counted(Path record, String log) {
        try {
            return Logs.ms(record, log).size();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static int closedPort() throws Exception {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    /** By method and status, in milliseconds, sorted. */
    private static Map<String, List<Double>> seen(AgentJvm.Ended ended) {
        return ended.out().stream()
                .map(line -> line.split("="))
                .sorted((a, b) -> Long.compare(Long.parseLong(a[1]), Long.parseLong(b[1])))
                .collect(Collectors.groupingBy(
                        line -> line[0],
                        TreeMap::new,
                        Collectors.mapping(line -> Long.parseLong(line[1]) / 1e6, Collectors.toList())));
    }
}
