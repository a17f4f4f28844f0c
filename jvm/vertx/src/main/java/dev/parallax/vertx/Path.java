package dev.parallax.vertx;

/** Extracts the path of a URI in a request line. */
final class Path {
    private Path() {}

    /** Removes scheme, host and query. Returns the same string if there is nothing to remove. */
    static String of(String uri) {
        int from = 0;
        if (!uri.startsWith("/")) {
            int scheme = uri.indexOf("://");
            from = scheme < 0 ? 0 : uri.indexOf('/', scheme + 3);
            if (from < 0) {
                return "/";
            }
        }
        int query = uri.indexOf('?', from);
        return uri.substring(from, query < 0 ? uri.length() : query);
    }
}
