package dev.parallax.springboot;

import dev.parallax.recorder.Catalog;
import org.springframework.boot.actuate.endpoint.Producible;
import org.springframework.boot.actuate.endpoint.annotation.ReadOperation;
import org.springframework.boot.actuate.endpoint.web.WebEndpointResponse;
import org.springframework.boot.actuate.endpoint.web.annotation.WebEndpoint;
import org.springframework.util.MimeType;
import org.springframework.util.MimeTypeUtils;

/** {@code /actuator/parallax}: the current values of all series as JSON, or as text with {@code Accept: text/plain}. */
@WebEndpoint(id = "parallax")
public final class ParallaxEndpoint {
    private final Catalog catalog;

    ParallaxEndpoint(Catalog catalog) {
        this.catalog = catalog;
    }

    /**
     * Reads all series.
     *
     * @param form accepted by the client
     * @return the series since the application started
     */
    @ReadOperation(producesFrom = Form.class)
    public WebEndpointResponse<Object> read(Form form) {
        Snapshot now = new Snapshot(catalog.read());
        return new WebEndpointResponse<>(form == Form.TEXT ? now.text() : now.tree(), form);
    }

    /** The format of the output. */
    public enum Form implements Producible<Form> {
        /** Text for people. */
        TEXT {
            @Override
            public MimeType getProducedMimeType() {
                return MimeTypeUtils.parseMimeType("text/plain;charset=utf-8");
            }
        },
        /** JSON for programs. */
        JSON {
            @Override
            public MimeType getProducedMimeType() {
                return MimeTypeUtils.APPLICATION_JSON;
            }

            @Override
            public boolean isDefault() {
                return true;
            }
        }
    }
}
