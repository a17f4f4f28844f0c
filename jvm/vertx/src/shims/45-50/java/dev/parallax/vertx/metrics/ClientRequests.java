package dev.parallax.vertx.metrics;

import dev.parallax.vertx.Client;

/** Requests of a client, for example of a database client, to one server. A version's class adds the SPI's type. */
abstract class ClientRequests {
    private final Client client;

    ClientRequests(Client client) {
        this.client = client;
    }

    public Long requestBegin(String uri, Object request) {
        return client.begin();
    }

    public void requestReset(Long sinceNs) {
        if (sinceNs != null) {
            client.reset(sinceNs);
        }
    }

    public void responseEnd(Long sinceNs) {
        if (sinceNs != null) {
            client.end(sinceNs);
        }
    }

    public void responseEnd(Long sinceNs, long bytes) {
        responseEnd(sinceNs);
    }
}
