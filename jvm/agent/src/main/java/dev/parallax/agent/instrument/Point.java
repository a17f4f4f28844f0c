package dev.parallax.agent.instrument;

import static dev.parallax.agent.instrument.Shape.AROUND;
import static dev.parallax.agent.instrument.Shape.ENTER;
import static dev.parallax.agent.instrument.Shape.LENT;
import static dev.parallax.agent.instrument.Shape.REPLACE;
import static dev.parallax.agent.instrument.Shape.SECOND;
import static dev.parallax.agent.instrument.Shape.TESTED;

/** The places in the application's libraries that are told of. Methods are those with the given number of parameters. */
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
    HIKARI_TEST("com.zaxxer.hikari.pool.PoolBase", "isConnectionDead", 1, TESTED),
    /** A connection is made. */
    HIKARI_CREATE("com.zaxxer.hikari.pool.PoolBase", "newConnection", 1, AROUND),
    /** A connection is given back. */
    HIKARI_RETURN("com.zaxxer.hikari.pool.PoolEntry", "recycle", 0, LENT);

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
        return name().startsWith("HTTP_") ? Library.HTTPCLIENT5 : Library.HIKARICP;
    }
}
