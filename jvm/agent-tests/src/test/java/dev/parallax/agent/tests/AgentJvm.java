package dev.parallax.agent.tests;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Runs a program of these tests in its own JVM, with the packed agent. */
final class AgentJvm {
    private static final Path AGENT = Path.of(System.getProperty("agent.jar")).normalize();
    private static final long LONGEST_S = 120;

    private final Path folder;
    private final List<String> before = new ArrayList<>();
    private final List<String> options = new ArrayList<>();
    private String classPath = applicationPath();
    private Process process;

    /** What is left of one that has ended. */
    record Ended(int status, List<String> out, String err) {
        /** The value of a line {@code name=value} that the program printed. */
        long number(String name) {
            return out.stream()
                    .filter(line -> line.startsWith(name + "="))
                    .map(line -> Long.parseLong(line.substring(name.length() + 1)))
                    .findFirst()
                    .orElseThrow(() -> new AssertionError("no " + name + " in " + out + err));
        }
    }

    AgentJvm(Path folder) {
        this.folder = folder;
    }

    static Path agent() {
        if (!Files.exists(AGENT)) {
            throw new AssertionError(AGENT + " is not there: run `mvn package` first");
        }
        return AGENT;
    }

    /** The class path without our own classes: an application has none of them. */
    static String applicationPath() {
        return path("parallax-|/jvm/[a-z0-9]+/target/|byte-buddy");
    }

    /** Of an application that has our modules, but the agent. */
    static String measuredPath() {
        return path("parallax-agent|/jvm/agent/target/|byte-buddy");
    }

    /** With other versions of two libraries, in the folder of that property, in place of those there. */
    static String withJars(String property, String path) throws IOException {
        try (Stream<Path> jars = Files.list(Path.of(System.getProperty(property)))) {
            return Stream.concat(jars.map(Path::toString), entries(path, "/client5/httpclient5/|/HikariCP/"))
                    .collect(Collectors.joining(File.pathSeparator));
        }
    }

    private static String path(String without) {
        return entries(System.getProperty("java.class.path"), without).collect(Collectors.joining(File.pathSeparator));
    }

    private static Stream<String> entries(String path, String without) {
        Pattern leftOut = Pattern.compile(without);
        return Pattern.compile(File.pathSeparator, Pattern.LITERAL)
                .splitAsStream(path)
                .filter(entry -> !leftOut.matcher(entry).find());
    }

    AgentJvm under(String... command) {
        before.addAll(Arrays.asList(command));
        return this;
    }

    AgentJvm with(String... jvmOptions) {
        options.addAll(Arrays.asList(jvmOptions));
        return this;
    }

    AgentJvm classPath(String path) {
        classPath = path;
        return this;
    }

    AgentJvm start(String agentOptions, Class<?> program, String... arguments) throws IOException {
        List<String> command = new ArrayList<>(before);
        command.add(java());
        command.addAll(options);
        if (agentOptions != null) {
            command.add("-javaagent:" + agent() + "=" + agentOptions);
        }
        command.addAll(List.of("-cp", classPath, program.getName()));
        command.addAll(Arrays.asList(arguments));
        launch(command);
        return this;
    }

    private static String java() {
        return Path.of(System.getProperty("java.home"), "bin", "java").toString();
    }

    private void launch(List<String> command) throws IOException {
        process = new ProcessBuilder(command)
                .redirectOutput(folder.resolve("out").toFile())
                .redirectError(folder.resolve("err").toFile())
                .start();
    }

    long pid() {
        return process.pid();
    }

    /** Writes to the program's standard input. */
    void write(String line) throws IOException {
        process.getOutputStream().write((line + "\n").getBytes(StandardCharsets.US_ASCII));
        process.getOutputStream().flush();
    }

    /** The program's standard error so far. */
    String err() throws IOException {
        return Files.readString(folder.resolve("err"));
    }

    /** Runs the agent's jar as a program. */
    Ended program(String... arguments) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of(java(), "-jar", agent().toString()));
        command.addAll(Arrays.asList(arguments));
        launch(command);
        return end();
    }

    /** Waits until the program has printed such a line. */
    void until(String line) throws IOException, InterruptedException {
        long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(LONGEST_S);
        while (!Files.readAllLines(folder.resolve("out")).contains(line)) {
            if (System.nanoTime() - endNs > 0 || !process.isAlive()) {
                throw new AssertionError("no line '" + line + "': " + Files.readString(folder.resolve("err")));
            }
            Thread.sleep(10);
        }
    }

    Ended end() throws IOException, InterruptedException {
        try {
            if (!process.waitFor(LONGEST_S, TimeUnit.SECONDS)) {
                throw new AssertionError("does not end: " + Files.readString(folder.resolve("err")));
            }
        } finally {
            process.destroyForcibly();
        }
        return new Ended(
                process.exitValue(),
                Files.readAllLines(folder.resolve("out")),
                Files.readString(folder.resolve("err")));
    }

    /** Of one that ends well. */
    Ended run(String agentOptions, Class<?> program, String... arguments) throws IOException, InterruptedException {
        Ended ended = start(agentOptions, program, arguments).end();
        if (ended.status != 0) {
            throw new AssertionError(program + " failed: " + ended);
        }
        return ended;
    }
}
