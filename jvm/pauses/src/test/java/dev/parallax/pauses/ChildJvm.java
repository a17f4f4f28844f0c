package dev.parallax.pauses;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.jar.Attributes;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;

/** Runs a program of these tests in a separate JVM of the same kind, and ends it. */
final class ChildJvm {
    private static final long LONGEST_S = 600;

    private ChildJvm() {
    }

    /**
     * Lines that the program printed. A program that fails or does not end fails the test, with its output.
     *
     * @param before words before the JVM's path, for example to pin it to a CPU.
     */
    static List<String> run(
        final Path directory, final List<String> before, final List<String> options, final Class<?> program,
        final String... args) throws IOException, InterruptedException {
        final List<String> command = new ArrayList<>(before);
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(options);
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), program.getName()));
        command.addAll(Arrays.asList(args));
        final Path out = directory.resolve("out");
        final Path err = directory.resolve("err");
        final Process child = new ProcessBuilder(command).redirectOutput(out.toFile()).redirectError(err.toFile()).start();
        try {
            if (!child.waitFor(LONGEST_S, TimeUnit.SECONDS) || child.exitValue() != 0) {
                throw new AssertionError(command + " failed: " + Files.readString(err));
            }
        } finally {
            child.destroyForcibly();
        }
        return Files.readAllLines(out);
    }

    /** A jar that contains only the name of an agent, whose class is on the class path. */
    static Path agentJar(final Path directory, final Class<?> agent) throws IOException {
        final Manifest manifest = new Manifest();
        final Attributes attributes = manifest.getMainAttributes();
        attributes.put(Attributes.Name.MANIFEST_VERSION, "1.0");
        attributes.put(new Attributes.Name("Premain-Class"), agent.getName());
        attributes.put(new Attributes.Name("Can-Redefine-Classes"), "true");
        final Path jar = directory.resolve("agent.jar");
        new JarOutputStream(Files.newOutputStream(jar), manifest).close();
        return jar;
    }

    /** Whether this JVM was built with a collector; {@code name} as in {@code -XX:+UseNameGC}. */
    static boolean has(final String name) throws IOException, InterruptedException {
        final Process child = new ProcessBuilder(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-XX:+Use" + name + "GC", "-version")
            .redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
        return child.waitFor() == 0;
    }
}
