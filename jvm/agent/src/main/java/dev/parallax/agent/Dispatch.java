package dev.parallax.agent;

/**
 * Called by code woven into the application's classes. Defined in the bootstrap loader, the only one that all class
 * loaders of an application are sure to ask, even those that search their own jars first.
 *
 * <p>Throws nothing and holds no reference to the application.
 */
public final class Dispatch {
    private static volatile Relay relay;

    private Dispatch() {}

    /**
     * Connects the agent.
     *
     * @param to the agent's relay; null disconnects
     */
    public static void connect(Relay to) {
        relay = to;
    }

    /**
     * See {@link Relay#entered}.
     *
     * @param point the instrumented place
     * @param woven the instrumented class
     * @param self the object
     * @param argument further argument
     * @return null if no agent is connected or it failed
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
     * @param point the instrumented place
     * @param woven the instrumented class
     * @param begun returned by {@link #entered}; null does nothing
     * @param returned return value of the method
     * @param thrown exception of the method
     * @return null to keep the return value, or if no agent is connected or it failed
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
            // There is nobody left to report to, and the application must not notice.
        }
    }
}
