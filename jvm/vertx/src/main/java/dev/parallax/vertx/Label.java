package dev.parallax.vertx;

import java.util.EnumSet;
import java.util.Set;

/** Labels that can be enabled. The value of a disabled label is never built. */
public enum Label {
    /** Own address. */
    LOCAL("local"),
    /** Address of the other side. */
    REMOTE("remote"),
    /** Path of the request; many values. */
    PATH("path"),
    /** Route matched by the router. */
    ROUTE("route"),
    /** Request method. */
    METHOD("method"),
    /** Response status. */
    CODE("code"),
    /** HTTP version; since Vert.x 5.1. */
    VERSION("version"),
    /** Class of the exception. */
    CLASS_NAME("class"),
    /** Event bus address. */
    ADDRESS("address"),
    /** Where an event bus message came from: local or remote. */
    SIDE("side"),
    /** Failure of an event bus reply. */
    FAILURE("failure"),
    /** Type of a pool: worker, http. */
    POOL_TYPE("pool_type"),
    /** Name of a pool. */
    POOL_NAME("pool_name"),
    /** Metrics name of a client; since Vert.x 5.0. */
    CLIENT_NAME("client_name"),
    /** Metrics name of a server; since Vert.x 5.1. */
    SERVER_NAME("server_name"),
    /** Namespace of a client. */
    NAMESPACE("client_namespace");

    /** Name of the label. */
    final String text;

    Label(String text) {
        this.text = text;
    }

    /**
     * Labels enabled by default in Vert.x 4.5.
     *
     * @return a new set
     */
    public static Set<Label> defaultsOf45() {
        return EnumSet.of(ROUTE, METHOD, CODE, POOL_TYPE, SIDE);
    }

    /**
     * Labels enabled by default in Vert.x 5.0.
     *
     * @return a new set
     */
    public static Set<Label> defaultsOf50() {
        return EnumSet.of(METHOD, CODE, POOL_TYPE, POOL_NAME, SIDE);
    }

    /**
     * Labels enabled by default in Vert.x 5.1 and 5.2.
     *
     * @return a new set
     */
    public static Set<Label> defaultsOf51() {
        return EnumSet.of(METHOD, CODE, POOL_TYPE, POOL_NAME, SIDE, CLIENT_NAME, SERVER_NAME, NAMESPACE);
    }
}
