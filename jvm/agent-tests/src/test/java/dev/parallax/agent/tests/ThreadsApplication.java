package dev.parallax.agent.tests;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;

/** An application that sends a request for each line of its input, and prints the number of the agent's threads. */
public final class ThreadsApplication {
    private ThreadsApplication() {}

    public static void main(String[] arguments) throws Exception {
        HttpClient client = HttpClient.newBuilder().executor(Runnable::run).build();
        HttpRequest request = HttpRequest.newBuilder(URI.create(arguments[0])).build();
        client.send(request, BodyHandlers.ofString());
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); !"end".equals(line); line = in.readLine()) {
            String body = client.send(request, BodyHandlers.ofString()).body();
            long threads = Thread.getAllStackTraces().keySet().stream()
                    .filter(thread -> thread.getName().startsWith("parallax"))
                    .count();
            System.out.println("threads of " + line + "=" + threads);
            System.out.println(line + " " + body);
        }
    }
}
