/**
 * When and for how long the JVM stood still, exactly; why; and what callers would have waited meanwhile.
 * <p>
 * {@link dev.parallax.pauses.PauseClock} tells how long, at once and for nanoseconds.
 * {@link dev.parallax.pauses.PauseStream} tells why, up to a second late, or when the collection is over.
 * {@link dev.parallax.pauses.Platform} tells what the operating system took away and the JVM cannot see.
 * {@link dev.parallax.pauses.CorrectedSeries} tells what an open load would have waited, beside what a recorder recorded.
 */
package dev.parallax.pauses;
