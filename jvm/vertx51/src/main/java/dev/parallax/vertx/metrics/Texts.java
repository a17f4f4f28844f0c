package dev.parallax.vertx.metrics;

import dev.parallax.vertx.Addresses;
import io.vertx.core.http.HttpVersion;
import io.vertx.core.net.SocketAddress;

/** What only this version has as labels' values. */
final class Texts {
    private Texts() {}

    /** By the host's name, if there is one. */
    static String named(SocketAddress address) {
        String name = address.hostName();
        return Addresses.text(address, name == null ? "_" : name);
    }

    /** Null if there is none. */
    static String text(HttpVersion version) {
        if (version == null) {
            return null;
        }
        return switch (version) {
            case HTTP_1_0 -> "HTTP/1.0";
            case HTTP_1_1 -> "HTTP/1.1";
            case HTTP_2 -> "HTTP/2";
            case HTTP_3 -> "HTTP/3";
        };
    }
}
