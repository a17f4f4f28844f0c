package dev.parallax.httpclient5;

import java.util.stream.Stream;
import org.apache.hc.client5.http.impl.classic.HttpClientBuilder;
import org.apache.hc.core5.util.VersionInfo;

/** Of HttpClient: older builders do not tell their connection manager. */
final class LeastVersion {
    private static final boolean IS_THERE =
            Stream.of(HttpClientBuilder.class.getMethods()).anyMatch(method -> method.getName().equals("getConnManager"));

    private LeastVersion() {}

    /** Before a client is touched. */
    static void check() {
        if (!IS_THERE) {
            VersionInfo found =
                    VersionInfo.loadVersionInfo("org.apache.hc.client5", HttpClientBuilder.class.getClassLoader());
            throw new UnsupportedOperationException("HttpClient " + (found == null ? "of an unknown version" : found.getRelease())
                    + " cannot be measured; the least version is 5.6");
        }
    }
}
