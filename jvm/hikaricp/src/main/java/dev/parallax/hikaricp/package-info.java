/**
 * Measures HikariCP 7.0 and later: wait, use and creation of connections, in nanoseconds.
 *
 * <p>Start with {@link dev.parallax.hikaricp.MeasuredDataSource}.
 */
package dev.parallax.hikaricp;
