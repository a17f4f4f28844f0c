package dev.parallax.vertx;

import io.vertx.core.net.SocketAddress;

/** Formats addresses as label values. */
public final class Addresses {
    private Addresses() {}

    /**
     * Formats an address.
     *
     * @param address null becomes {@code ?}
     * @param name replaces the host; may be null
     * @return host and port, or the path of a Unix domain socket
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
