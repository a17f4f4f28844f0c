package dev.parallax.suites.httpclient5;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.io.InputStream;
import org.apache.hc.client5.http.classic.methods.HttpGet;
import org.apache.hc.core5.http.ClassicHttpResponse;
import org.apache.hc.core5.http.io.entity.EntityUtils;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

/** A body that an application of the classic client reads itself, to the end or not. */
@ParameterizedClass
@MethodSource("dev.parallax.suites.httpclient5.Arm#here")
class BodyTest {
    private static final String LONG = "a long story. ".repeat(10_000);

    private Server server;
    private Rig rig;

    @Parameter
    private Arm arm;

    @BeforeEach
    void open() throws IOException {
        server = new Server(exchange -> exchange.send(200, LONG));
        rig = new Rig(new Arm.Way(arm, false), new Settings(), server);
    }

    @AfterEach
    void close() throws IOException {
        rig.close();
        server.close();
    }

    @Test
    void aBodyThatIsReadToItsEndGivesTheConnectionBack() throws Exception {
        try (ClassicHttpResponse response = rig.classic().executeOpen(null, get(), null)) {
            assertEquals(1, rig.pool.getTotalStats().getLeased());
            assertEquals(LONG, EntityUtils.toString(response.getEntity()));
            assertEquals(1, rig.pool.getTotalStats().getAvailable());
        }
        rig.reported(server, "{calls=1, connects=1, requests=1, waits=1}");
    }

    /** The stream reads what is left, so that the connection can be kept. */
    @Test
    void aStreamThatIsClosedEarlyGivesTheConnectionBack() throws Exception {
        try (ClassicHttpResponse response = rig.classic().executeOpen(null, get(), null);
                InputStream body = response.getEntity().getContent()) {
            assertEquals('a', body.read());
        }
        assertEquals(1, rig.pool.getTotalStats().getAvailable());
        rig.reported(server, "{calls=1, connects=1, requests=1, waits=1}");
    }

    /** Cancelling is how a body is abandoned that the application does not want to wait for. */
    @Test
    void aRequestThatIsCancelledInItsBodyTakesTheConnectionAlong() throws Exception {
        HttpGet request = get();
        ClassicHttpResponse response = rig.classic().executeOpen(null, request, null);
        InputStream body = response.getEntity().getContent();
        assertEquals('a', body.read());
        request.cancel();
        assertThrows(IOException.class, body::readAllBytes);
        assertThrows(IOException.class, response::close);
        assertEquals(0, rig.pool.getTotalStats().getLeased());
        assertEquals(0, rig.pool.getTotalStats().getAvailable());
        rig.reported(server, "{calls failed=1, connects=1, failed=1, waits=1}");
    }

    @Test
    void aHandlerThatFailsGivesTheConnectionBack() throws Exception {
        assertThrows(IllegalStateException.class, () -> rig.classic().execute(get(), response -> {
            throw new IllegalStateException("planted");
        }));
        assertEquals(0, rig.pool.getTotalStats().getLeased());
        assertEquals(LONG, rig.classic().execute(get(), response -> EntityUtils.toString(response.getEntity())));
        assertEquals(2, server.requests.get());
        rig.reported(server, "{calls=2, connects=1, requests=2, waits=2}");
    }

    private HttpGet get() {
        return new HttpGet(server.url("/"));
    }
}
