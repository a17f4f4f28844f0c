/**
 * Wait, use and creation of the connections of HikariCP, 7.0 and later, in nanoseconds.
 *
 * <p>Start with {@code MeasuredDataSource}.
 */
package dev.parallax.hikaricp;
