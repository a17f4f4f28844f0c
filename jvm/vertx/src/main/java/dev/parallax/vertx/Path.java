package dev.parallax.vertx;

/** Of a URI, as a request line has it. */
final class Path {
    private Path() {}

    /** Without scheme, host and query. The URI itself, and not a copy, where it is nothing else. */
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
