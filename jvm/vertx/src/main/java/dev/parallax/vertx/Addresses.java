package dev.parallax.vertx;

import io.vertx.core.net.SocketAddress;

/** Addresses as labels' values. */
public final class Addresses {
    private Addresses() {}

    /**
     * As it is shown.
     *
     * @param address {@code ?} where it is null
     * @param name in place of the host's; may be null
     * @return host and port, or the path of a socket
     */
    public static String text(SocketAddress address, String name) {
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
