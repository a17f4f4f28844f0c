package dev.parallax.httpclient5;

import java.util.stream.Stream;
import org.apache.hc.client5.http.impl.classic.HttpClientBuilder;
import org.apache.hc.core5.util.VersionInfo;

/** Refuses HttpClient before 5.6, whose builders do not expose their connection manager. */
final class MinimumVersion {
    private static final boolean IS_THERE =
            Stream.of(HttpClientBuilder.class.getMethods()).anyMatch(method -> method.getName().equals("getConnManager"));

    private MinimumVersion() {}

    /** Call this before touching a client. */
    static void check() {
        if (!IS_THERE) {
            VersionInfo found =
                    VersionInfo.loadVersionInfo("org.apache.hc.client5", HttpClientBuilder.class.getClassLoader());
            throw new UnsupportedOperationException("HttpClient " + (found == null ? "of an unknown version" : found.getRelease())
                    + " cannot be measured; version 5.6 or later is required");
        }
    }
}
