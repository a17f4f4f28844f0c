/**
 * Weaves calls into classes of the application, and hands them to the module that knows what they mean.
 *
 * <p>{@code Weaving} changes byte code when a class of a known name is loaded, {@code Hook} is what it then calls, by way of
 * {@code Dispatch}. A hook is defined in a {@code Bridge}, a class loader beside the application's that sees both the
 * application's library and the agent, and that neither of them sees.
 */
package dev.parallax.agent.instrument;
