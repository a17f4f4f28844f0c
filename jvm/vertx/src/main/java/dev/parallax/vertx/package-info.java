/**
 * The series of Vert.x over the recorder, by the names and labels of vertx-micrometer-metrics 4 and later, so that dashboards
 * go on working. What differs between Vert.x' versions is in a module for each.
 *
 * <p>Not here: its tags by a function of the request, its names of version 3, its binders of JVM and Netty.
 *
 * <p>Start with {@code SeriesOptions} and {@code Exchanges}.
 */
package dev.parallax.vertx;
