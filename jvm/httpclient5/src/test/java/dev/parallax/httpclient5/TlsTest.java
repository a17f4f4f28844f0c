package dev.parallax.httpclient5;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpsConfigurator;
import com.sun.net.httpserver.HttpsServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLContext;
import org.apache.hc.client5.http.async.methods.SimpleRequestBuilder;
import org.apache.hc.client5.http.classic.methods.HttpGet;
import org.apache.hc.client5.http.impl.async.CloseableHttpAsyncClient;
import org.apache.hc.client5.http.impl.async.HttpAsyncClients;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.apache.hc.client5.http.impl.io.PoolingHttpClientConnectionManagerBuilder;
import org.apache.hc.client5.http.impl.nio.PoolingAsyncClientConnectionManagerBuilder;
import org.apache.hc.client5.http.ssl.DefaultClientTlsStrategy;
import org.apache.hc.client5.http.ssl.TlsSocketStrategy;
import org.apache.hc.core5.http.io.entity.EntityUtils;
import org.apache.hc.core5.http.nio.ssl.TlsStrategy;
import org.apache.hc.core5.ssl.SSLContexts;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A real handshake with a certificate that the test makes; its time is separate from the connect if it is
 * timestamped.
 */
class TlsTest {
    private static final char[] PASSWORD = "planted".toCharArray();

    private final HttpClientMetrics metrics = new HttpClientMetrics();

    @TempDir
    Path folder;

    @Test
    void aHandshakeIsDistinguishedFromTheConnect() throws Exception {
        SSLContext ssl = certificate();
        try (Upstream upstream = upstream(ssl)) {
            get(upstream, ssl, true);
            check(1);
            getAsync(upstream, ssl, true);
            check(2);
        }
    }

    /** Not stamped, it is part of the connect. */
    @Test
    void aHandshakeThatIsNotStampedIsOfTheConnect() throws Exception {
        SSLContext ssl = certificate();
        try (Upstream upstream = upstream(ssl)) {
            get(upstream, ssl, false);
            getAsync(upstream, ssl, false);
        }
        assertEquals(0, Seen.only(metrics).handshakes().total().count());
        assertEquals(2, Seen.only(metrics).connects().total().count());
        assertTrue(Seen.only(metrics).connects().total().sumNs() > 1_000_000, "two handshakes take more");
    }

    @Test
    void aCertificateThatIsNotTrustedFailsInTheHandshake() throws Exception {
        SSLContext stranger = SSLContexts.createDefault();
        try (Upstream upstream = upstream(certificate())) {
            assertThrows(IOException.class, () -> get(upstream, stranger, true));
            assertThrows(ExecutionException.class, () -> getAsync(upstream, stranger, true));
            assertEquals("{tls tls_failed=2}", Seen.rows(Seen.only(metrics).failures()));
            assertEquals(0, Seen.only(metrics).handshakes().total().count());
            Seen.until("at rest", () -> Seen.isAtRest(metrics));
        }
    }

    private void check(int connections) {
        ServerMetrics server = Seen.only(metrics);
        assertEquals(connections, server.connects().total().count());
        assertEquals(connections, server.handshakes().total().count());
        // On loopback TCP takes microseconds, and a handshake computes for milliseconds.
        assertTrue(
                server.handshakes().total().maxNs().orElseThrow() > 500_000,
                "a handshake of " + server.handshakes().total().maxNs());
        assertEquals("{GET 200=" + connections + "}", Seen.rows(server.requests()));
    }

    private void get(Upstream upstream, SSLContext ssl, boolean isStamped) throws IOException {
        DefaultClientTlsStrategy strategy = new DefaultClientTlsStrategy(ssl);
        try (CloseableHttpClient client = metrics.install(HttpClients.custom()
                        .setConnectionManager(PoolingHttpClientConnectionManagerBuilder.create()
                                .setTlsSocketStrategy(isStamped ? metrics.timeHandshakes(blocking(strategy)) : strategy)
                                .build()))
                .build()) {
            client.execute(new HttpGet(url(upstream)), response -> EntityUtils.toByteArray(response.getEntity()));
        }
    }

    private void getAsync(Upstream upstream, SSLContext ssl, boolean isStamped) throws Exception {
        DefaultClientTlsStrategy strategy = new DefaultClientTlsStrategy(ssl);
        try (CloseableHttpAsyncClient client = metrics.install(HttpAsyncClients.custom()
                        .setConnectionManager(PoolingAsyncClientConnectionManagerBuilder.create()
                                .setTlsStrategy(isStamped ? metrics.timeHandshakes(nonBlocking(strategy)) : strategy)
                                .build()))
                .build()) {
            client.start();
            client.execute(SimpleRequestBuilder.get(url(upstream)).build(), null).get(5, TimeUnit.SECONDS);
        }
    }

    private static TlsSocketStrategy blocking(DefaultClientTlsStrategy strategy) {
        return strategy;
    }

    private static TlsStrategy nonBlocking(DefaultClientTlsStrategy strategy) {
        return strategy;
    }

    private static String url(Upstream upstream) {
        return upstream.url("").replace("http:", "https:");
    }

    private static Upstream upstream(SSLContext ssl) throws IOException {
        HttpsServer server = HttpsServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.setHttpsConfigurator(new HttpsConfigurator(ssl));
        return new Upstream(server);
    }

    private SSLContext certificate() throws Exception {
        Path store = folder.resolve("store.p12");
        Process keytool = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "keytool").toString(),
                        "-genkeypair", "-keyalg", "EC", "-alias", "planted", "-dname", "CN=localhost",
                        "-ext", "san=dns:localhost", "-validity", "2", "-storetype", "PKCS12",
                        "-keystore", store.toString(), "-storepass", new String(PASSWORD))
                .inheritIO()
                .start();
        assertTrue(keytool.waitFor(60, TimeUnit.SECONDS));
        assertEquals(0, keytool.exitValue());
        return SSLContexts.custom()
                .loadKeyMaterial(store, PASSWORD, PASSWORD)
                .loadTrustMaterial(store, PASSWORD)
                .build();
    }
}
