package dev.parallax.vertx;

import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.UserPrincipal;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/** A PostgreSQL server on a free loopback port, with the table of {@link Fortunes}. */
final class Postgres implements AutoCloseable {
    final int port;
    private final ChildProcess server;

    /**
     * Data directory. If this user is root, which PostgreSQL refuses, it belongs to the user created by the package.
     */
    private final Path folder = Files.createTempDirectory("parallax-postgres");

    Postgres() throws Exception {
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = free.getLocalPort();
        }
        List<String> as = List.of();
        if (System.getProperty("user.name").equals("root")) {
            as = List.of("setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups");
            UserPrincipal user = folder.getFileSystem().getUserPrincipalLookupService().lookupPrincipalByName("postgres");
            Files.setOwner(folder, user);
        }
        String data = folder.resolve("data").toString();
        run(all(as, programs().resolve("initdb").toString(), "-D", data, "-U", "postgres", "-A", "trust", "--no-sync"));
        server = new ChildProcess("INT", all(List.of("taskset", "-c", ServerCost.LOAD_CPU), all(as,
                programs().resolve("postgres").toString(), "-D", data, "-p", "" + port, "-k", folder.toString(),
                "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off").toArray(String[]::new)));
        try {
            for (int trial = 1; ; trial++) {
                try {
                    run(List.of("psql", "-h", "127.0.0.1", "-p", "" + port, "-U", "postgres", "-q", "-c", Fortunes.TABLE));
                    return;
                } catch (IOException e) {
                    if (trial == 100) {
                        throw e;
                    }
                    Thread.sleep(100);
                }
            }
        } catch (Exception e) {
            close();
            throw new IOException(server.output(), e);
        }
    }

    /** Debian has a folder per version; elsewhere the programs are on the usual path. */
    private static Path programs() throws IOException {
        Path debians = Path.of("/usr/lib/postgresql");
        if (!Files.isDirectory(debians)) {
            return Path.of("/usr/bin");
        }
        try (Stream<Path> versions = Files.list(debians)) {
            return versions.map(version -> version.resolve("bin"))
                    .filter(bin -> Files.isExecutable(bin.resolve("postgres")))
                    .findFirst()
                    .orElseThrow(() -> new IOException("no PostgreSQL in " + debians + "; install postgresql"));
        }
    }

    private static List<String> all(List<String> first, String... then) {
        List<String> all = new ArrayList<>(first);
        all.addAll(List.of(then));
        return all;
    }

    private static void run(List<String> command) throws Exception {
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        process.getOutputStream().close();
        String output = new String(process.getInputStream().readAllBytes());
        if (process.waitFor() != 0) {
            throw new IOException(String.join(" ", command) + ": " + output);
        }
    }

    @Override
    public void close() throws IOException {
        server.close();
        try (Stream<Path> all = Files.walk(folder)) {
            all.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
        }
    }
}
