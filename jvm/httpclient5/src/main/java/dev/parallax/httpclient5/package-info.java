/**
 * Measures Apache HttpClient 5: the wait for a pooled connection apart from the request.
 *
 * <p>Start with {@link dev.parallax.httpclient5.HttpClientMetrics}.
 */
package dev.parallax.httpclient5;
