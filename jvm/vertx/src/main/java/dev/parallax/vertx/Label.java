package dev.parallax.vertx;

import java.util.EnumSet;
import java.util.Set;

/** A label that can be switched on. One that is off is never built. */
public enum Label {
    /** Own address. */
    LOCAL("local"),
    /** The other's address. */
    REMOTE("remote"),
    /** Of the request's URI: many. */
    PATH("path"),
    /** As the router has it. */
    ROUTE("route"),
    /** Of the request. */
    METHOD("method"),
    /** Of the response. */
    CODE("code"),
    /** Of HTTP; since Vert.x 5.1. */
    VERSION("version"),
    /** Of the exception. */
    CLASS_NAME("class"),
    /** Of the event bus. */
    ADDRESS("address"),
    /** Of the event bus: local or remote. */
    SIDE("side"),
    /** Of a reply on the event bus. */
    FAILURE("failure"),
    /** Of a pool: worker, http. */
    POOL_TYPE("pool_type"),
    /** Of a pool. */
    POOL_NAME("pool_name"),
    /** The metrics' name that a client is given; since Vert.x 5.0. */
    CLIENT_NAME("client_name"),
    /** The metrics' name that a server is given; since Vert.x 5.1. */
    SERVER_NAME("server_name"),
    /** The namespace that a client is given. */
    NAMESPACE("client_namespace");

    /** As it is shown. */
    final String text;

    Label(String text) {
        this.text = text;
    }

    /**
     * What is on where nobody said otherwise, in Vert.x 4.5.
     *
     * @return a new set
     */
    public static Set<Label> usualOf45() {
        return EnumSet.of(ROUTE, METHOD, CODE, POOL_TYPE, SIDE);
    }

    /**
     * What is on where nobody said otherwise, in Vert.x 5.0.
     *
     * @return a new set
     */
    public static Set<Label> usualOf50() {
        return EnumSet.of(METHOD, CODE, POOL_TYPE, POOL_NAME, SIDE);
    }

    /**
     * What is on where nobody said otherwise, in Vert.x 5.1 and 5.2.
     *
     * @return a new set
     */
    public static Set<Label> usualOf51() {
        return EnumSet.of(METHOD, CODE, POOL_TYPE, POOL_NAME, SIDE, CLIENT_NAME, SERVER_NAME, NAMESPACE);
    }
}
