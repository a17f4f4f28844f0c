package dev.parallax.agent.instrument;

import static dev.parallax.agent.instrument.Shape.AROUND;
import static dev.parallax.agent.instrument.Shape.BOTH;
import static dev.parallax.agent.instrument.Shape.ENTER;
import static dev.parallax.agent.instrument.Shape.FIRST;
import static dev.parallax.agent.instrument.Shape.LENT;
import static dev.parallax.agent.instrument.Shape.PROMISED;
import static dev.parallax.agent.instrument.Shape.REPLACE;
import static dev.parallax.agent.instrument.Shape.SECOND;

/**
 * Instrumented places in libraries: the methods with this name and number of parameters, {@link #ANY} for any number.
 */
public enum Point {
    /** A classic client is built. */
    HTTP_CLASSIC("org.apache.hc.client5.http.impl.classic.HttpClientBuilder", "build", 0, ENTER),
    /** An interceptor is added to a classic client, by the agent or the application. */
    HTTP_CLASSIC_STEP("org.apache.hc.client5.http.impl.classic.HttpClientBuilder", "addExecInterceptorFirst", 2, SECOND),
    /** An asynchronous client is built. */
    HTTP_ASYNC("org.apache.hc.client5.http.impl.async.HttpAsyncClientBuilder", "build", 0, ENTER),
    /** An interceptor is added to an asynchronous client. */
    HTTP_ASYNC_STEP("org.apache.hc.client5.http.impl.async.HttpAsyncClientBuilder", "addExecInterceptorFirst", 2, SECOND),
    /** A pool gets its metrics tracker. */
    HIKARI_TRACKER("com.zaxxer.hikari.pool.HikariPool", "setMetricsTrackerFactory", 1, REPLACE),
    /** A connection is borrowed. */
    HIKARI_BORROW("com.zaxxer.hikari.pool.HikariPool", "getConnection", 0, AROUND),
    /** An idle connection is tested. */
    HIKARI_TEST("com.zaxxer.hikari.pool.PoolBase", "isConnectionDead", 1, FIRST),
    /** A connection is created. */
    HIKARI_CREATE("com.zaxxer.hikari.pool.PoolBase", "newConnection", Point.ANY, AROUND),
    /** A connection is handed to its borrower. */
    HIKARI_LEND("com.zaxxer.hikari.pool.PoolEntry", "createProxyConnection", 1, LENT),
    /** A connection is returned. */
    HIKARI_RETURN("com.zaxxer.hikari.pool.PoolEntry", "recycle", 0, LENT),
    /** A connection broke while it was borrowed. If that happened during its return, {@link #HIKARI_RETURN} follows. */
    HIKARI_BREAK("com.zaxxer.hikari.pool.PoolEntry", "evict", 1, LENT),
    /** A request is sent synchronously. */
    JDK_SEND("jdk.internal.net.http.HttpClientImpl", "send", 2, FIRST),
    /** A request is sent asynchronously. */
    JDK_SEND_ASYNC("jdk.internal.net.http.HttpClientImpl", "sendAsync", 3, PROMISED),
    /** A connection is borrowed. One overload calls another. */
    POOL2_BORROW("org.apache.commons.pool2.impl.GenericObjectPool", "borrowObject", 1, AROUND),
    /** A connection is created, or the pool turns out to be full. */
    POOL2_CREATE("org.apache.commons.pool2.impl.GenericObjectPool", "create", Point.ANY, AROUND),
    /** A connection is returned. */
    POOL2_RETURN("org.apache.commons.pool2.impl.GenericObjectPool", "returnObject", 1, FIRST),
    /** A borrowed connection is discarded. */
    POOL2_INVALIDATE("org.apache.commons.pool2.impl.GenericObjectPool", "invalidateObject", Point.ANY, FIRST),
    /** A connection is requested. */
    LETTUCE_ACQUIRE("io.lettuce.core.support.BoundedAsyncPool", "acquire0", 2, SECOND),
    /** A request for a connection is fulfilled. */
    LETTUCE_LEND("io.lettuce.core.support.BoundedAsyncPool", "completeAcquire", 2, BOTH),
    /** A connection is returned. */
    LETTUCE_RELEASE("io.lettuce.core.support.BoundedAsyncPool", "release", 1, FIRST);

    /** Any number of parameters. */
    static final int ANY = -1;

    final String className;
    final String method;
    final int parameters;
    final Shape shape;

    Point(String className, String method, int parameters, Shape shape) {
        this.className = className;
        this.method = method;
        this.parameters = parameters;
        this.shape = shape;
    }

    /** The library of this place, as in the option {@code instrument}. */
    Library library() {
        return Library.of(className);
    }

    /** Whether a method with this name and number of parameters is meant. */
    boolean isOf(String name, int count) {
        return method.equals(name) && (parameters == ANY || parameters == count);
    }
}
