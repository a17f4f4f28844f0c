package dev.parallax.agent.instrument;

import java.util.Locale;

/** What the agent can look into. */
public enum Library {
    /** Apache HttpClient 5, classic and asynchronous. */
    HTTPCLIENT5(
            "org.apache.hc.client5.",
            "org.apache.hc.client5.http.HttpRoute",
            "dev.parallax.agent.hooks.HttpClient5Hook",
            "dev.parallax.httpclient5."),
    /** HikariCP. */
    HIKARICP(
            "com.zaxxer.hikari.",
            "com.zaxxer.hikari.HikariConfig",
            "dev.parallax.agent.hooks.HikariHook",
            "dev.parallax.hikaricp.");

    /** What the names of its classes begin with. */
    final String prefix;
    /** A class of which there is one wherever there is the library. */
    final String anchor;
    final String hook;
    /** The packages that are defined anew beside each copy of the library that an application loads. */
    final String packageName;

    Library(String prefix, String anchor, String hook, String packageName) {
        this.prefix = prefix;
        this.anchor = anchor;
        this.hook = hook;
        this.packageName = packageName;
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
