package dev.parallax.benchmarks;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import org.apache.hc.client5.http.classic.methods.HttpGet;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.apache.hc.core5.http.io.entity.EntityUtils;

/** An arm of {@link AgentCost}: makes requests, or is idle, and prints the CPU time of its process. */
final class AgentCostClient {
    private AgentCostClient() {}

    public static void main(String[] arguments) throws IOException, InterruptedException {
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        try (CloseableHttpClient client = HttpClients.createDefault()) {
            for (String order = orders.readLine(); order != null; order = orders.readLine()) {
                int number = Integer.parseInt(order.substring(order.indexOf(' ') + 1));
                long begunNs = cpuNs();
                if (order.startsWith("idle")) {
                    Thread.sleep(number);
                } else {
                    request(client, arguments[0], number);
                }
                System.out.println(cpuNs() - begunNs);
            }
        }
    }

    private static void request(CloseableHttpClient client, String url, int times) throws IOException {
        for (int i = 0; i < times; i++) {
            client.execute(new HttpGet(url), response -> {
                EntityUtils.consume(response.getEntity());
                return response.getCode();
            });
        }
    }

    /** Of all threads, by the scheduler's own account: the JVM's figure for its process counts in steps of 10 ms. */
    private static long cpuNs() throws IOException {
        long sum = 0;
        try (DirectoryStream<Path> threads = Files.newDirectoryStream(Path.of("/proc/self/task"))) {
            for (Path thread : threads) {
                try {
                    String account = Files.readString(thread.resolve("schedstat"));
                    sum += Long.parseLong(account.substring(0, account.indexOf(' ')));
                } catch (NoSuchFileException ended) {
                    continue;
                }
            }
        }
        return sum;
    }
}
