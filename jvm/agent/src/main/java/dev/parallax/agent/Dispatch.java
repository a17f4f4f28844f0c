package dev.parallax.agent;

/**
 * What code that is woven into the application's classes calls. It is defined in the bootstrap loader, for there is no
 * other that all of an application's class loaders are sure to ask: one that looks at its own jars first still finds
 * nothing of this name there.
 *
 * <p>Throws nothing and holds nothing of the application.
 */
public final class Dispatch {
    private static volatile Relay relay;

    private Dispatch() {}

    /**
     * Connects it.
     *
     * @param to the agent's; null while there is none
     */
    public static void connect(Relay to) {
        relay = to;
    }

    /**
     * See {@link Relay#entered}.
     *
     * @param point which place
     * @param woven whose code was changed
     * @param self the object
     * @param argument what else
     * @return null when there is nobody to ask, or it failed
     */
    public static Object entered(int point, Class<?> woven, Object self, Object argument) {
        Relay to = relay;
        if (to == null) {
            return null;
        }
        try {
            return to.entered(point, woven, self, argument);
        } catch (Throwable thrown) {
            failed(to, point, thrown);
            return null;
        }
    }

    /**
     * See {@link Relay#left}.
     *
     * @param point which place
     * @param woven whose code was changed
     * @param begun what {@link #entered} returned; nothing is done when it is null
     * @param returned what the method returns
     * @param thrown what the method throws
     * @return null when what the method returns is to stay, or there is nobody to ask, or it failed
     */
    public static Object left(int point, Class<?> woven, Object begun, Object returned, Throwable thrown) {
        Relay to = relay;
        if (to == null || begun == null) {
            return null;
        }
        try {
            return to.left(point, woven, begun, returned, thrown);
        } catch (Throwable failure) {
            failed(to, point, failure);
            return null;
        }
    }

    private static void failed(Relay to, int point, Throwable thrown) {
        try {
            to.failed(point, thrown);
        } catch (Throwable again) {
            // There is nobody left to tell, and the application must not be the one.
        }
    }
}
