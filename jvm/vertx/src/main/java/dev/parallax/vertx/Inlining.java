package dev.parallax.vertx;

/** Works around a limit of the JIT compiler. */
public final class Inlining {
    private Inlining() {}

    /**
     * Allows methods with these classes in their signatures to be inlined into Vert.x. Up to Java 17 a method is not
     * inlined until code from its own jar has resolved each class in its signature ({@code
     * SystemDictionary::validate_protection_domain}), and a call costs more than what our methods do. Naming the
     * classes in a call of this method resolves them.
     *
     * @param named ignored
     */
    public static void allow(Class<?>... named) {
        // Naming the classes was enough.
    }
}
