package dev.parallax.springboot;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.parallax.recorder.Catalog;
import dev.parallax.recorder.Family;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.web.client.RestClient;

/** Where the series are visible. */
class SeriesTest {
    private static final int CALLS = 7;

    @TempDir
    private Path folder;

    @Test
    void theEndpointReportsAllSeries() throws Exception {
        try (Upstream upstream = new Upstream();
                ConfigurableApplicationContext service = Service.start(
                        "management.endpoints.web.exposure.include=parallax", "spring.datasource.hikari.pool-name=planted")) {
            call(service, upstream);
            JsonNode json = new ObjectMapper().readTree(endpoint(service, "*/*", "application/json"));
            JsonNode requests = series(json, "http.client.request.duration");
            assertEquals("s", requests.get("unit").asText());
            assertEquals("durations", requests.get("kind").asText());
            JsonNode point = requests.get("points").get(0);
            assertEquals(CALLS, point.get("count").asInt());
            assertEquals("" + upstream.port(), point.get("labels").get("server.port").asText());
            assertEquals("200", point.get("labels").get("http.response.status_code").asText());
            assertTrue(point.get("p50").asDouble() <= point.get("max").asDouble() && point.get("p50").asDouble() > 0);
            assertFalse(point.has("p90"), "seven values cannot tell it");
            assertEquals(
                    "planted",
                    series(json, "db.client.connection.wait_time").at("/points/0/labels").get("db.client.connection.pool.name").asText());
            Set<String> names = new TreeSet<>();
            for (Family family : service.getBean(Catalog.class).read()) {
                names.add(family.name());
            }
            assertEquals(names.size(), json.get("series").size());

            String text = endpoint(service, "text/plain", "text/plain");
            String line = text.lines().filter(one -> one.startsWith("http.client.request.duration{")).findFirst().orElseThrow();
            assertTrue(line.matches(".*\\{.*http.request.method=\"GET\".*\\} count 7 mean [0-9.]+[mu]s p50 [0-9.]+[mu]s max [0-9.]+[mu]?s"), line);
        }
    }

    private static JsonNode series(JsonNode json, String name) {
        for (JsonNode one : json.get("series")) {
            if (one.get("name").asText().equals(name)) {
                return one;
            }
        }
        throw new AssertionError("no " + name + " in " + json);
    }

    private static String endpoint(ConfigurableApplicationContext service, String accepted, String type) throws Exception {
        URI uri = URI.create("http://localhost:" + Service.port(service) + "/actuator/parallax");
        HttpResponse<String> response = HttpClient.newHttpClient()
                .send(HttpRequest.newBuilder(uri).header("Accept", accepted).build(), HttpResponse.BodyHandlers.ofString());
        assertEquals(200, response.statusCode());
        assertTrue(response.headers().firstValue("Content-Type").orElse("").startsWith(type), response.headers().toString());
        return response.body();
    }

    @Test
    void aRunRecordHoldsAllThatWasMeasured() throws Exception {
        try (Upstream upstream = new Upstream()) {
            try (ConfigurableApplicationContext service =
                    Service.start("parallax.record.folder=" + folder, "parallax.record.interval=50ms")) {
                call(service, upstream);
                Thread.sleep(120);
                call(service, upstream);
            }
            Path record = Seen.only(folder);
            JsonNode run = new ObjectMapper().readTree(record.resolve("run.json").toFile());
            assertEquals("jvm", run.get("kind").asText());
            assertEquals("finished", run.get("state").asText());
            String log = "http.client.request.duration-localhost-" + upstream.port() + "-GET-200";
            String of = run.get("jvm").get("series").get(log).asText();
            assertTrue(of.matches("[^,]+, of .*http\\.request\\.method=GET.*"), of);
            List<String> lines = Files.readAllLines(record.resolve("series.ndjson"));
            assertTrue(lines.size() >= 3, lines.size() + " intervals");
            JsonNode last = new ObjectMapper().readTree(lines.get(lines.size() - 1));
            assertEquals(
                    run.get("time").get("elapsed_ns").asLong(),
                    last.get("start_ns").asLong() + last.get("length_ns").asLong());
            assertEquals(2 * CALLS, Seen.count(record, log));
        }
    }

    /** Nothing can be created below a file. */
    @Test
    void aRecordThatCannotBeWrittenKeepsNobodyFromStarting() throws Exception {
        Path file = Files.createFile(folder.resolve("file"));
        try (Upstream upstream = new Upstream();
                ConfigurableApplicationContext service = Service.start(
                        "parallax.record.folder=" + file.resolve("below"), "parallax.record.interval=soon")) {
            call(service, upstream);
        }
        assertEquals(0, Files.size(file));
    }

    /** An application that has none of what could be measured, nor the actuator. */
    @Test
    void nothingIsNeededOnTheClassPath() {
        new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(
                        SeriesAutoConfiguration.class, HttpClientAutoConfiguration.class, DataSourceAutoConfiguration.class))
                .withClassLoader(new FilteredClassLoader(
                        "org.apache.hc", "com.zaxxer", "org.springframework.boot.actuate", "org.springframework.boot.http",
                        "org.springframework.http", "org.springframework.web"))
                .run(context -> {
                    if (context.getStartupFailure() != null) {
                        throw new AssertionError(context.getStartupFailure());
                    }
                    assertEquals(1, context.getBeanNamesForType(Catalog.class).length);
                    assertFalse(context.containsBean("parallaxEndpoint"));
                    assertFalse(context.containsBean("parallaxPools"));
                });
    }

    private static void call(ConfigurableApplicationContext service, Upstream upstream) {
        for (int n = 0; n < CALLS; n++) {
            service.getBean(RestClient.class).get().uri(upstream.url("")).retrieve().body(String.class);
        }
    }
}
