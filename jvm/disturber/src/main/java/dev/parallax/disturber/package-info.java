/**
 * Puts load on this JVM's memory and safepoints, at a known rate and for a known time, to observe an application under
 * it and to test instruments against it.
 *
 * <p>Start with {@code Disturbance}.
 */
package dev.parallax.disturber;
