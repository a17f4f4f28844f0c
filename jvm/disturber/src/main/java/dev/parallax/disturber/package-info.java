/**
 * Presses on this JVM's memory and safepoints, at a known rate and for a known time, so that an application can be seen
 * under it and instruments can be tested against it.
 *
 * <p>Start with {@code Disturbance}.
 */
package dev.parallax.disturber;
