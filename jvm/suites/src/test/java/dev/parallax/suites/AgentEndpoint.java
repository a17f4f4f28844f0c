package dev.parallax.suites;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** The endpoint of this JVM's agent; without an agent there is none, and requests fail. */
public final class AgentEndpoint {
    private final int port;

    private AgentEndpoint(int port) {
        this.port = port;
    }

    /**
     * Finds it. The agent prints its port only on standard error, so call this while nothing else listens.
     *
     * @return the endpoint of this JVM
     */
    public static AgentEndpoint find() {
        try {
            Set<Integer> ports = listeners();
            if (ports.size() != 1) {
                throw new AssertionError("an agent listens on one port, here it is " + ports);
            }
            return new AgentEndpoint(ports.iterator().next());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /**
     * The counts and numbers that have a label.
     *
     * @param label of a pool or a server
     * @return by the series' names
     */
    public Map<String, Long> figures(String label) {
        Map<String, Long> figures = new TreeMap<>();
        for (JsonNode series : read(label)) {
            JsonNode figure = series.has("count") ? series.get("count") : series.get("value");
            figures.put(series.get("name").asText(), figure.asLong());
        }
        return figures;
    }

    /**
     * The total length of all durations of a series with a label.
     *
     * @param label of a pool or a server
     * @param name of the series
     * @return in nanoseconds; 0 if there is none
     */
    public long sumNs(String label, String name) {
        return read(label).stream()
                .filter(series -> series.get("name").asText().equals(name))
                .mapToLong(series -> series.get("sum_ns").asLong())
                .sum();
    }

    private List<JsonNode> read(String label) {
        try {
            URL url = URI.create("http://localhost:" + port + "/json").toURL();
            List<JsonNode> found = new ArrayList<>();
            try (InputStream answer = url.openStream()) {
                for (JsonNode series : new ObjectMapper().readTree(answer).get("series")) {
                    if (series.get("label").asText().equals(label)) {
                        found.add(series);
                    }
                }
            }
            return found;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** The ports on which this process listens, as Linux reports them. */
    private static Set<Integer> listeners() throws IOException {
        Set<String> own;
        try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"))) {
            own = open.map(AgentEndpoint::target).collect(Collectors.toSet());
        }
        Set<Integer> ports = new HashSet<>();
        for (String table : List.of("/proc/self/net/tcp", "/proc/self/net/tcp6")) {
            for (String line : Files.readAllLines(Path.of(table))) {
                String[] columns = line.trim().split("\\s+");
                boolean isListener = columns.length > 9 && columns[3].equals("0A");
                if (isListener && own.contains("socket:[" + columns[9] + "]")) {
                    ports.add(Integer.parseInt(columns[1].substring(columns[1].indexOf(':') + 1), 16));
                }
            }
        }
        return ports;
    }

    private static String target(Path link) {
        try {
            return Files.readSymbolicLink(link).toString();
        } catch (IOException e) {
            // Closed since it was listed.
            return "";
        }
    }
}
