/**
 * When this JVM, or a thread of it, did not run, and why.
 *
 * <p>{@code Meter} looks at the clock at fixed moments and notes how late it was; {@code Evidence} is what it reads along
 * with that; {@code Verdicts} divides each hiccup among its causes once all that can be known is known.
 */
package dev.parallax.agent.meter;
