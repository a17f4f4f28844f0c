/**
 * Measures when this JVM or a thread in it did not run, and why.
 *
 * <p>{@code Meter} wakes up periodically and records how late it was; {@code Raw} is the evidence it collects with
 * that; {@code Verdicts} divides each hiccup among its causes once all evidence is available.
 */
package dev.parallax.agent.meter;
