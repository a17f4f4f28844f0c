/**
 * Measures HTTP clients and connection pools of a Spring Boot application as soon as it is on the class path.
 *
 * <p>Covers what Spring creates or is given as a bean: RestClient, RestTemplate and WebClient from the builders that
 * Spring Boot configures, if they use Apache HttpClient 5; such clients, their builders, and RestTemplates around them;
 * and HikariCP's data sources. A client that code creates without exposing it as a bean is not measured: install {@code
 * HttpClientMetrics}, which is a bean, in it.
 *
 * <p>Start with {@code HttpClientAutoConfiguration} and {@code DataSourceAutoConfiguration}. Any failure here is one
 * line in the log, and the application runs as if this were not installed.
 */
package dev.parallax.springboot;
