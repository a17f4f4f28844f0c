package dev.parallax.springboot;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpsConfigurator;
import com.sun.net.httpserver.HttpsServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.apache.hc.core5.ssl.SSLContexts;

/** A self-signed one for localhost, in a file. */
final class Certificate implements AutoCloseable {
    private static final String PASSWORD = "planted";

    private final Path folder;
    private final Path store;

    Certificate() throws Exception {
        folder = Files.createTempDirectory("parallax");
        store = folder.resolve("store.p12");
        Process keytool = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "keytool").toString(),
                        "-genkeypair", "-keyalg", "EC", "-alias", "planted", "-dname", "CN=localhost",
                        "-ext", "san=dns:localhost", "-validity", "2", "-storetype", "PKCS12",
                        "-keystore", store.toString(), "-storepass", PASSWORD)
                .redirectErrorStream(true)
                .start();
        keytool.getInputStream().readAllBytes();
        assertTrue(keytool.waitFor(60, TimeUnit.SECONDS));
        assertEquals(0, keytool.exitValue());
    }

    Path path() {
        return store;
    }

    Upstream upstream() throws Exception {
        HttpsServer server = HttpsServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.setHttpsConfigurator(new HttpsConfigurator(SSLContexts.custom()
                .loadKeyMaterial(store, PASSWORD.toCharArray(), PASSWORD.toCharArray())
                .build()));
        return new Upstream(server, "https");
    }

    @Override
    public void close() throws IOException {
        Files.deleteIfExists(store);
        Files.deleteIfExists(folder);
    }
}
