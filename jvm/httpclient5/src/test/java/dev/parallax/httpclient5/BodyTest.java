package dev.parallax.httpclient5;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import org.apache.hc.client5.http.classic.methods.HttpGet;
import org.apache.hc.client5.http.classic.methods.HttpHead;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.apache.hc.client5.http.impl.io.PoolingHttpClientConnectionManager;
import org.apache.hc.core5.http.ClassicHttpResponse;
import org.apache.hc.core5.http.io.entity.EntityUtils;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A request lasts to the end of its body, is counted once however it ends, and never keeps its connection. */
@Timeout(60)
class BodyTest {
    private final HttpClientMetrics metrics = new HttpClientMetrics();
    private final PoolingHttpClientConnectionManager manager = new PoolingHttpClientConnectionManager();
    private Upstream upstream;
    private CloseableHttpClient client;

    @BeforeEach
    void open() throws IOException {
        upstream = new Upstream();
        client = metrics.install(HttpClients.custom().setConnectionManager(manager)).build();
    }

    @AfterEach
    void everyConnectionIsBack() throws IOException {
        assertEquals(0, manager.getTotalStats().getLeased());
        assertTrue(Seen.isAtRest(metrics));
        client.close();
        upstream.close();
    }

    @Test
    void aRequestLastsToTheEndOfItsBody() throws Exception {
        try (ClassicHttpResponse response = open("head=100,body=200,size=1000")) {
            InputStream body = response.getEntity().getContent();
            assertEquals(1000, body.readAllBytes().length);
            assertEquals(-1, body.read());
            body.close();
            body.close();
        }
        check("{GET 200=1}", "{}");
        double headMs = server().responseHeads().total().sumNs() / 1e6;
        double wholeMs = Seen.all(server().requests()).sumNs() / 1e6;
        assertTrue(headMs >= 99 && headMs < 200, "head " + headMs);
        assertTrue(wholeMs >= 299, "whole " + wholeMs);
        assertTrue(Seen.all(server().calls()).sumNs() >= Seen.all(server().requests()).sumNs());
    }

    @Test
    void aBodyThatIsWrittenElsewhere() throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (ClassicHttpResponse response = open("size=70000")) {
            response.getEntity().writeTo(out);
        }
        assertArrayEquals(new byte[70000], out.toByteArray());
        check("{GET 200=1}", "{}");
    }

    @Test
    void aBodyThatIsConsumedUnread() throws Exception {
        try (ClassicHttpResponse response = open("size=70000")) {
            EntityUtils.consume(response.getEntity());
        }
        check("{GET 200=1}", "{}");
        assertEquals(1, manager.getTotalStats().getAvailable());
    }

    @Test
    void aStreamThatIsClosedInTheMiddleIsReadToItsEndByTheClient() throws Exception {
        try (ClassicHttpResponse response = open("size=70000")) {
            InputStream body = response.getEntity().getContent();
            assertEquals(0, body.read());
            body.close();
        }
        check("{GET 200=1}", "{}");
    }

    @Test
    void aResponseThatIsClosedUnreadIsReadToItsEndByTheClient() throws Exception {
        open("size=70000").close();
        check("{GET 200=1}", "{}");
        assertEquals(1, manager.getTotalStats().getAvailable());
    }

    /** With this client two threads must not close at once, but may cancel. */
    @Test
    void aResponseThatIsClosedWhileAnotherCancelsItIsCountedOnce() throws Exception {
        int rounds = 100;
        for (int round = 0; round < rounds; round++) {
            HttpGet request = new HttpGet(upstream.url("size=10"));
            ClassicHttpResponse response = client.executeOpen(null, request, null);
            Thread other = new Thread(request::cancel);
            other.start();
            try {
                response.close();
            } catch (IOException e) {
                assertTrue(request.isCancelled(), e.toString());
            }
            other.join(5000);
        }
        assertEquals(rounds, Seen.all(server().requests()).count() + Seen.all(server().failures()).count());
        assertEquals(rounds, Seen.all(server().calls()).count() + server().failedCalls().total().count());
    }

    @Test
    void anApplicationThatFailsWhileItWritesTheBody() throws Exception {
        try (ClassicHttpResponse response = open("size=70000")) {
            assertThrows(IOException.class, () -> response.getEntity().writeTo(new FullDisk()));
        }
        assertEquals(1, Seen.all(server().failures()).count());
        assertEquals("{}", Seen.rows(server().requests()));
    }

    @Test
    void aResponseWithoutABody() throws Exception {
        client.execute(new HttpHead(upstream.url("")), response -> null);
        client.execute(new HttpGet(upstream.url("status=204,size=0")), response -> null);
        check("{GET 204=1, HEAD 200=1}", "{}");
    }

    /** The client checks the type of the stream to find them: a wrapper would hide them. */
    @Test
    void trailersAreWhereTheyWere() throws Exception {
        String chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Sum\r\n\r\n"
                + "3\r\nabc\r\n0\r\nSum: 7\r\n\r\n";
        try (Scripted scripted = new Scripted(chunked, Scripted.Then.SILENCE);
                ClassicHttpResponse response = client.executeOpen(null, new HttpGet(scripted.url()), null)) {
            assertEquals("abc", EntityUtils.toString(response.getEntity()));
            assertEquals("7", response.getEntity().getTrailers().get().get(0).getValue());
        }
        check("{GET 200=1}", "{}");
    }

    private static final class FullDisk extends OutputStream {
        @Override
        public void write(int b) throws IOException {
            throw new IOException("planted: no space");
        }
    }

    private ClassicHttpResponse open(String what) throws IOException {
        return client.executeOpen(null, new HttpGet(upstream.url(what)), null);
    }

    private ServerMetrics server() {
        return Seen.only(metrics);
    }

    private void check(String requests, String failures) {
        assertEquals(requests, Seen.rows(server().requests()));
        assertEquals(failures, Seen.rows(server().failures()));
    }
}
