package dev.parallax.agent.instrument;

import java.util.Locale;
import java.util.Optional;

/** What the agent can look into. */
public enum Library {
    /** Apache HttpClient, classic and asynchronous. */
    HTTPCLIENT5(
            "org.apache.hc.client5.",
            "org.apache.hc.client5.http.HttpRoute",
            "dev.parallax.agent.hooks.HttpClient5Hook",
            "dev.parallax.httpclient5.",
            new Least("HttpClient", "5.6", "org.apache.hc.client5.http.impl.classic.HttpClientBuilder", "getConnManager", 0,
                    "org/apache/hc/client5/version.properties", "info.release")),
    /** HikariCP. */
    HIKARICP(
            "com.zaxxer.hikari.",
            "com.zaxxer.hikari.HikariConfig",
            "dev.parallax.agent.hooks.HikariHook",
            "dev.parallax.hikaricp.",
            new Least("HikariCP", "5.0.1", "com.zaxxer.hikari.pool.PoolEntry", "createProxyConnection", 1,
                    "META-INF/maven/com.zaxxer/HikariCP/pom.properties", "version")),
    /** The JDK's own HTTP client. */
    JDKHTTP(
            "jdk.internal.net.http.",
            "jdk.internal.net.http.HttpClientImpl",
            "dev.parallax.agent.hooks.JdkHttpHook",
            Library.HOOKS,
            null),
    /** The pools of Jedis, and those of Lettuce that make callers wait. */
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

    /** The package of all hooks. */
    static final String HOOKS = "dev.parallax.agent.hooks.";

    /** What the names of its classes begin with. */
    final String prefix;
    /** A class of which there is one wherever there is the library. */
    final String anchor;
    final String hook;
    /** The packages that are defined anew, beside {@link #HOOKS}, for each copy of the library that an application loads. */
    final String packageName;
    /** Null for any. */
    private final Least least;

    Library(String prefix, String anchor, String hook, String packageName, Least least) {
        this.prefix = prefix;
        this.anchor = anchor;
        this.hook = hook;
        this.packageName = packageName;
        this.least = least;
    }

    /** Which one the class of that name is of. */
    static Library of(String className) {
        for (Library library : values()) {
            if (className.startsWith(library.prefix)) {
                return library;
            }
        }
        throw new IllegalArgumentException(className + " is of no library that is woven");
    }

    /** One line why the version that this loader has is not looked into; empty where it is. */
    Optional<String> refusal(ClassLoader loader) {
        return least == null ? Optional.empty() : least.refusal(loader);
    }

    /**
     * Its name as an option.
     *
     * @return in lower case
     */
    public String option() {
        return name().toLowerCase(Locale.ROOT);
    }
}
