package dev.parallax.vertx51;

import io.vertx.core.http.HttpVersion;
import io.vertx.core.net.SocketAddress;

/** Addresses and versions as labels' values. */
final class Addresses {
    private Addresses() {}

    /** @param name in place of the host's; may be null */
    static String text(SocketAddress address, String name) {
        if (address == null) {
            return "?";
        }
        if (name == null) {
            return address.toString();
        }
        int port = address.port();
        return (port >= 0 ? SocketAddress.inetSocketAddress(port, name) : SocketAddress.domainSocketAddress(name)).toString();
    }

    /** By the host's name, where there is one. */
    static String named(SocketAddress address) {
        String name = address.hostName();
        return text(address, name == null ? "_" : name);
    }

    /** Null where there is none. */
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
