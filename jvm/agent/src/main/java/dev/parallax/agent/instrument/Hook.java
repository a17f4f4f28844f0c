package dev.parallax.agent.instrument;

import dev.parallax.agent.report.Source;

/** One library of one of the application's class loaders. Called by the application's threads: no lock, little garbage. */
public interface Hook extends Source {
    /**
     * See {@link dev.parallax.agent.Relay#entered}.
     *
     * @param point of this hook
     * @param self the object
     * @param argument what else the place hands over
     * @return as the place needs it
     * @throws Exception is said once and never reaches the application
     */
    Object entered(Point point, Object self, Object argument) throws Exception;

    /**
     * See {@link dev.parallax.agent.Relay#left}.
     *
     * @param point of this hook
     * @param begun what was returned when it was entered
     * @param returned by the application's method; null also when it returned nothing, or threw
     * @param thrown by the application's method; null when it returned
     * @return what the place is to return instead; null for the same
     * @throws Exception as above
     */
    default Object left(Point point, Object begun, Object returned, Throwable thrown) throws Exception {
        return null;
    }
}
