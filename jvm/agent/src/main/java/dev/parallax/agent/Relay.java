package dev.parallax.agent;

/** What {@link Dispatch} calls: implemented in the agent's class loader, declared in the bootstrap loader. */
public abstract class Relay {
    /** Extended by the agent only. */
    protected Relay() {}

    /**
     * The application enters a method, or passes a place without a matching exit.
     *
     * @param point the instrumented place
     * @param woven the instrumented class, from the application's loader
     * @param self the object; null in a constructor
     * @param argument further argument
     * @return depends on the place: a replacement argument, or the value to pass to {@link #left}
     */
    public abstract Object entered(int point, Class<?> woven, Object self, Object argument);

    /**
     * The application leaves the method.
     *
     * @param point the instrumented place
     * @param woven the instrumented class
     * @param begun returned by {@link #entered}, never null
     * @param returned return value; null also for void methods and exceptions
     * @param thrown exception; null on normal return
     * @return replacement for the return value, or null to keep it
     */
    public abstract Object left(int point, Class<?> woven, Object begun, Object returned, Throwable thrown);

    /**
     * One of the methods above threw. Reported once per kind; the application must not notice.
     *
     * @param point the instrumented place
     * @param thrown by the method
     */
    public abstract void failed(int point, Throwable thrown);
}
