package dev.parallax.vertx50;

import io.vertx.core.net.SocketAddress;

/** Addresses as labels' values. */
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
}
