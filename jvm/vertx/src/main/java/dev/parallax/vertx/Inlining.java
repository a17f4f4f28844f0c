package dev.parallax.vertx;

/** What the compiler has to know before it puts our methods into those of Vert.x. */
public final class Inlining {
    private Inlining() {}

    /**
     * Lets methods be inlined whose signatures have these classes. Up to Java 17 none is before code of its own jar has asked
     * for each of them, as who names one here has ({@code SystemDictionary::validate_protection_domain}); a call that stays one
     * costs more than what our methods do.
     *
     * @param named is not looked at
     */
    public static void allow(Class<?>... named) {
        // They were asked for by being named.
    }
}
