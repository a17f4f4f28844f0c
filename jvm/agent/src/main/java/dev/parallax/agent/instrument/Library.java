package dev.parallax.agent.instrument;

import java.util.Locale;
import java.util.Optional;

/** Libraries that the agent can instrument. */
public enum Library {
    /** Apache HttpClient, classic and asynchronous. */
    HTTPCLIENT5(
            "org.apache.hc.client5.",
            "org.apache.hc.client5.http.HttpRoute",
            "dev.parallax.agent.hooks.HttpClient5Hook",
            "dev.parallax.httpclient5.",
            new MinimumVersion("HttpClient", "5.6", "org.apache.hc.client5.http.impl.classic.HttpClientBuilder", "getConnManager", 0,
                    "org/apache/hc/client5/version.properties", "info.release")),
    /** HikariCP. */
    HIKARICP(
            "com.zaxxer.hikari.",
            "com.zaxxer.hikari.HikariConfig",
            "dev.parallax.agent.hooks.HikariHook",
            "dev.parallax.hikaricp.",
            new MinimumVersion("HikariCP", "5.0.1", "com.zaxxer.hikari.pool.PoolEntry", "createProxyConnection", 1,
                    "META-INF/maven/com.zaxxer/HikariCP/pom.properties", "version")),
    /** The JDK's own HTTP client. */
    JDKHTTP(
            "jdk.internal.net.http.",
            "jdk.internal.net.http.HttpClientImpl",
            "dev.parallax.agent.hooks.JdkHttpHook",
            Library.HOOKS,
            null),
    /** The pools of Jedis, and the blocking pools of Lettuce. */
    COMMONSPOOL2(
            "org.apache.commons.pool2.",
            "org.apache.commons.pool2.ObjectPool",
            "dev.parallax.agent.hooks.CommonsPool2Hook",
            Library.HOOKS,
            null),
    /** Lettuce's asynchronous pool. */
    LETTUCE(
            "io.lettuce.core.",
            "io.lettuce.core.RedisURI",
            "dev.parallax.agent.hooks.LettuceHook",
            Library.HOOKS,
            null);

    /** Package of all hooks. */
    static final String HOOKS = "dev.parallax.agent.hooks.";

    /** Prefix of its class names. */
    final String prefix;
    /** A class that exists wherever the library does. */
    final String anchor;
    final String hook;
    /** Packages that are defined for each copy of the library, in addition to {@link #HOOKS}. */
    final String packageName;
    /** Null for any version. */
    private final MinimumVersion least;

    Library(String prefix, String anchor, String hook, String packageName, MinimumVersion least) {
        this.prefix = prefix;
        this.anchor = anchor;
        this.hook = hook;
        this.packageName = packageName;
        this.least = least;
    }

    /** Returns the library of a class. */
    static Library of(String className) {
        for (Library library : values()) {
            if (className.startsWith(library.prefix)) {
                return library;
            }
        }
        throw new IllegalArgumentException(className + " belongs to no instrumented library");
    }

    /** Returns why this loader's version is not instrumented, in one line; empty if it is. */
    Optional<String> refusal(ClassLoader loader) {
        return least == null ? Optional.empty() : least.refusal(loader);
    }

    /**
     * Name as an option value.
     *
     * @return in lower case
     */
    public String option() {
        return name().toLowerCase(Locale.ROOT);
    }
}
