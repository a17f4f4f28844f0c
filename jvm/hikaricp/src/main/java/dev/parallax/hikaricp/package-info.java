/**
 * Wait, use and creation of HikariCP's connections, in nanoseconds.
 *
 * <p>Start with {@code MeasuredDataSource}.
 */
package dev.parallax.hikaricp;
