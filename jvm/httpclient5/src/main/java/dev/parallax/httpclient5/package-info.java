/**
 * The wait for a pooled connection apart from the request, for Apache HttpClient 5.
 *
 * <p>Start with {@code HttpClientMetrics}.
 */
package dev.parallax.httpclient5;
