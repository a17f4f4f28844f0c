package dev.parallax.agent.instrument;

import dev.parallax.agent.report.Source;

/**
 * Handles the events of one library in one class loader. Called on the application's threads: must take no lock and
 * allocate little.
 */
public interface Hook extends Source {
    /**
     * See {@link dev.parallax.agent.Relay#entered}.
     *
     * @param point of this hook
     * @param self the object
     * @param argument further argument
     * @return depends on the place
     * @throws Exception is reported once and never reaches the application
     */
    Object entered(Point point, Object self, Object argument) throws Exception;

    /**
     * See {@link dev.parallax.agent.Relay#left}.
     *
     * @param point of this hook
     * @param begun returned when the method was entered
     * @param returned return value of the application's method; null also for void methods and exceptions
     * @param thrown exception of the application's method; null on normal return
     * @return replacement for the return value, or null to keep it
     * @throws Exception is reported once and never reaches the application
     */
    default Object left(Point point, Object begun, Object returned, Throwable thrown) throws Exception {
        return null;
    }
}
