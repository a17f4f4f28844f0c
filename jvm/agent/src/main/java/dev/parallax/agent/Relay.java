package dev.parallax.agent;

/** What stands behind {@link Dispatch}: of the agent's own class loader, while this type is of the bootstrap loader. */
public abstract class Relay {
    /** By the agent only. */
    protected Relay() {}

    /**
     * The application enters a method, or leaves one that has no more to tell.
     *
     * @param point which place it is
     * @param woven the class whose code was changed; of the application's loader
     * @param self the object; null in a constructor
     * @param argument what else the place hands over
     * @return for the place: another argument, or what {@link #left} is to be given
     */
    public abstract Object entered(int point, Class<?> woven, Object self, Object argument);

    /**
     * The application leaves the method.
     *
     * @param point which place it is
     * @param woven the class whose code was changed
     * @param begun what {@link #entered} returned, never null
     * @param returned what it returns; null also when it returns nothing, or throws
     * @param thrown what it throws; null when it returns
     * @return for the place: what is to be returned instead, null for the same
     */
    public abstract Object left(int point, Class<?> woven, Object begun, Object returned, Throwable thrown);

    /**
     * One of the two above threw. To be said once for each kind; the application is not to know.
     *
     * @param point which place it is
     * @param thrown what it was
     */
    public abstract void failed(int point, Throwable thrown);
}
