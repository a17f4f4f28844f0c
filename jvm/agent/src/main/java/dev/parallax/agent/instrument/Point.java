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
 * The places in the application's libraries that are told of. Methods are those with the given number of parameters, {@link
 * #ANY} for all.
 */
public enum Point {
    /** A classic client comes into being. */
    HTTP_CLASSIC("org.apache.hc.client5.http.impl.classic.HttpClientBuilder", "build", 0, ENTER),
    /** Somebody, ourselves or the application, puts a step into a classic client. */
    HTTP_CLASSIC_STEP("org.apache.hc.client5.http.impl.classic.HttpClientBuilder", "addExecInterceptorFirst", 2, SECOND),
    /** An asynchronous client comes into being. */
    HTTP_ASYNC("org.apache.hc.client5.http.impl.async.HttpAsyncClientBuilder", "build", 0, ENTER),
    /** Somebody puts a step into an asynchronous client. */
    HTTP_ASYNC_STEP("org.apache.hc.client5.http.impl.async.HttpAsyncClientBuilder", "addExecInterceptorFirst", 2, SECOND),
    /** A pool is told who keeps its statistics. */
    HIKARI_TRACKER("com.zaxxer.hikari.pool.HikariPool", "setMetricsTrackerFactory", 1, REPLACE),
    /** A connection is borrowed. */
    HIKARI_BORROW("com.zaxxer.hikari.pool.HikariPool", "getConnection", 0, AROUND),
    /** A connection that was idle is tested. */
    HIKARI_TEST("com.zaxxer.hikari.pool.PoolBase", "isConnectionDead", 1, FIRST),
    /** A connection is made. */
    HIKARI_CREATE("com.zaxxer.hikari.pool.PoolBase", "newConnection", Point.ANY, AROUND),
    /** A connection goes to who borrows it. */
    HIKARI_LEND("com.zaxxer.hikari.pool.PoolEntry", "createProxyConnection", 1, LENT),
    /** A connection is given back. */
    HIKARI_RETURN("com.zaxxer.hikari.pool.PoolEntry", "recycle", 0, LENT),
    /** A connection broke in the hands of who borrowed it. If that was when he gave it back, {@link #HIKARI_RETURN} follows. */
    HIKARI_BREAK("com.zaxxer.hikari.pool.PoolEntry", "evict", 1, LENT),
    /** A request is sent, and its caller waits. */
    JDK_SEND("jdk.internal.net.http.HttpClientImpl", "send", 2, FIRST),
    /** A request is sent, and its caller does not wait. */
    JDK_SEND_ASYNC("jdk.internal.net.http.HttpClientImpl", "sendAsync", 3, PROMISED),
    /** A connection is borrowed. One of these calls another of them. */
    POOL2_BORROW("org.apache.commons.pool2.impl.GenericObjectPool", "borrowObject", 1, AROUND),
    /** A connection is made, or it is found that there may be no more. */
    POOL2_CREATE("org.apache.commons.pool2.impl.GenericObjectPool", "create", Point.ANY, AROUND),
    /** A connection is given back. */
    POOL2_RETURN("org.apache.commons.pool2.impl.GenericObjectPool", "returnObject", 1, FIRST),
    /** A connection that is lent is thrown away. */
    POOL2_INVALIDATE("org.apache.commons.pool2.impl.GenericObjectPool", "invalidateObject", Point.ANY, FIRST),
    /** A connection is asked for. */
    LETTUCE_ACQUIRE("io.lettuce.core.support.BoundedAsyncPool", "acquire0", 2, SECOND),
    /** Who asked for a connection gets it. */
    LETTUCE_LEND("io.lettuce.core.support.BoundedAsyncPool", "completeAcquire", 2, BOTH),
    /** A connection is given back. */
    LETTUCE_RELEASE("io.lettuce.core.support.BoundedAsyncPool", "release", 1, FIRST);

    /** However many parameters there are. */
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

    /** Which module of the agent it is for, as in the option {@code instrument}. */
    Library library() {
        return Library.of(className);
    }

    /** Whether this is of a method of that name and so many parameters. */
    boolean isOf(String name, int count) {
        return method.equals(name) && (parameters == ANY || parameters == count);
    }
}
