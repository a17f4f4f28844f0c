/**
 * When and for how long the JVM was stalled, exactly; why; and what callers would have waited in the meantime.
 * <p>
 * {@link dev.parallax.pauses.PauseClock} reports how long, immediately and at a cost of nanoseconds.
 * {@link dev.parallax.pauses.PauseStream} reports why, up to a second late, or when the collection is over.
 * {@link dev.parallax.pauses.Platform} reports what the operating system took away and the JVM cannot see.
 * {@link dev.parallax.pauses.CorrectedSeries} reports what an open load would have waited, besides what was recorded.
 */
package dev.parallax.pauses;
