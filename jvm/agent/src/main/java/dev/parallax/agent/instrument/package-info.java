/**
 * Weaves calls into classes of the application and passes them to the module that interprets them.
 *
 * <p>{@code Weaving} changes the byte code of classes with known names when they are loaded; the changed code calls a
 * {@code Hook} through {@code Dispatch}. A hook is defined in a {@code Bridge}, a class loader next to the
 * application's that sees both the application's library and the agent; neither of them sees it.
 */
package dev.parallax.agent.instrument;
