package dev.parallax.suites.httpclient5;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLContext;
import org.apache.hc.client5.http.auth.AuthScope;
import org.apache.hc.client5.http.auth.UsernamePasswordCredentials;
import org.apache.hc.client5.http.impl.auth.BasicCredentialsProvider;
import org.apache.hc.core5.http.HttpHost;
import org.apache.hc.core5.ssl.SSLContexts;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

/** Through a proxy: figures are those of the requested server, and a tunnel is part of one connect. */
@ParameterizedClass
@MethodSource("dev.parallax.suites.httpclient5.Arm$Way#here")
class TunnelTest {
    private static final char[] PASSWORD = "planted".toCharArray();
    private static final String WHO = "Proxy-Authenticate: Basic realm=\"planted\"";

    @TempDir
    private static Path folder;

    private static SSLContext tls;

    private final Settings settings = new Settings();

    @Parameter
    private Arm.Way way;

    @BeforeAll
    static void certificate() throws Exception {
        Path store = folder.resolve("store.p12");
        Process keytool = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "keytool").toString(),
                        "-genkeypair", "-keyalg", "EC", "-alias", "planted", "-dname", "CN=localhost",
                        "-ext", "san=dns:localhost", "-validity", "2", "-storetype", "PKCS12",
                        "-keystore", store.toString(), "-storepass", new String(PASSWORD))
                .redirectErrorStream(true)
                .redirectOutput(folder.resolve("keytool").toFile())
                .start();
        assertTrue(keytool.waitFor(60, TimeUnit.SECONDS));
        assertEquals(0, keytool.exitValue());
        tls = SSLContexts.custom()
                .loadKeyMaterial(store, PASSWORD, PASSWORD)
                .loadTrustMaterial(store, PASSWORD)
                .build();
    }

    @Test
    void aProxyIsAskedForWhatTheServerHas() throws Exception {
        try (Server server = new Server(exchange -> exchange.send(500, "not asked"));
                Server proxy = new Server(exchange -> exchange.send(200, "for " + exchange.target))) {
            settings.proxy = new HttpHost("localhost", proxy.port());
            try (Rig rig = new Rig(way, settings, server, proxy)) {
                assertEquals("200 for " + server.url("/"), rig.get(server.url("/")));
                rig.rest();
                rig.reported(server, "{calls=1, connects=1, requests=1, waits=1}");
                rig.reported(proxy, "{}");
            }
        }
    }

    @Test
    void aTunnelIsPartOfOneConnect() throws Exception {
        try (Server server = secret();
                Server proxy = new Server(TunnelTest::tunnels)) {
            through(proxy);
            try (Rig rig = new Rig(way, settings, server, proxy)) {
                for (int n = 0; n < 2; n++) {
                    assertEquals("200 secret", rig.get(https(server)));
                    rig.rest();
                }
                assertEquals(1, proxy.connections.get());
                assertEquals(1, server.connections.get());
                assertEquals(2, rig.leases.get());
                rig.reported(server, "{calls=2, connects=1, requests=2, waits=2}");
                rig.reported(proxy, "{}");
            }
        }
    }

    @Test
    void aProxyThatAsksWhoItIsIsAnswered() throws Exception {
        checkIsAnswered(exchange -> exchange.send(407, "who?", WHO), 1);
    }

    /** If this fails, a tunnel that was in the end is reported as a failure as well. */
    @Test
    void aProxyThatAsksWhoItIsAndClosesIsAnsweredOnAnotherConnection() throws Exception {
        checkIsAnswered(
                exchange -> {
                    exchange.send(407, "who?", WHO, "Connection: close");
                    exchange.end();
                },
                2);
    }

    /** @param connections to the proxy */
    private void checkIsAnswered(Server.Handler asks, int connections) throws Exception {
        try (Server server = secret();
                Server proxy = new Server(exchange -> {
                    if (exchange.headers.containsKey("proxy-authorization")) {
                        tunnels(exchange);
                    } else {
                        asks.answer(exchange);
                    }
                })) {
            through(proxy);
            BasicCredentialsProvider known = new BasicCredentialsProvider();
            known.setCredentials(
                    new AuthScope("localhost", proxy.port()),
                    new UsernamePasswordCredentials("planted", "secret".toCharArray()));
            settings.credentials = known;
            try (Rig rig = new Rig(way, settings, server, proxy)) {
                assertEquals("200 secret", rig.get(https(server)));
                rig.rest();
                assertEquals(2, proxy.requests.get());
                assertEquals(connections, proxy.connections.get());
                rig.reported(server, "{calls=1, connects=1, requests=1, waits=1}");
            }
        }
    }

    @Test
    void aTunnelThatIsRefusedIsAnsweredByTheProxyAndIsNoConnection() throws Exception {
        try (Server server = secret();
                Server proxy = new Server(exchange -> exchange.send(403, "no"))) {
            through(proxy);
            try (Rig rig = new Rig(way, settings, server, proxy)) {
                assertEquals("403 no", rig.get(https(server)));
                rig.rest();
                assertEquals(0, server.connections.get());
                rig.reported(server, "{calls failed=1, failed=1, waits=1}");
            }
        }
    }

    @Test
    void aServerWithTlsIsAskedWithoutAProxyAsWell() throws Exception {
        settings.tls = tls;
        try (Server server = secret();
                Rig rig = new Rig(way, settings, server)) {
            for (int n = 0; n < 2; n++) {
                assertEquals("200 secret", rig.get(https(server)));
                rig.rest();
            }
            assertEquals(1, server.connections.get());
            rig.reported(server, "{calls=2, connects=1, requests=2, waits=2}");
        }
    }

    private void through(Server proxy) {
        settings.proxy = new HttpHost("localhost", proxy.port());
        settings.tls = tls;
    }

    private static void tunnels(Server.Exchange exchange) throws IOException {
        assertEquals("CONNECT", exchange.method);
        exchange.raw("HTTP/1.1 200 planted\r\n\r\n");
        exchange.tunnel(URI.create("tunnel://" + exchange.target).getPort());
    }

    private static Server secret() throws IOException {
        return new Server(tls.getServerSocketFactory(), exchange -> exchange.send(200, "secret"));
    }

    private static String https(Server server) {
        return server.url("/").replace("http:", "https:");
    }
}
