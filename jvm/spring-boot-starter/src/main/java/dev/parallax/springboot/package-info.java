/**
 * HTTP clients and connection pools of a Spring Boot application, measured by being on the class path.
 *
 * <p>Measured is what Spring makes or is given as a bean: RestClient, RestTemplate and WebClient by the builders that Spring
 * Boot configures, where they use Apache HttpClient 5; such clients, their builders, and RestTemplates around them; and
 * HikariCP's data sources. A client that code makes and shows to nobody is not: install {@code HttpClientMetrics}, which is
 * a bean, in it.
 *
 * <p>Start with {@code HttpClientAutoConfiguration} and {@code DataSourceAutoConfiguration}. Whatever fails here is one line
 * in the log, and the application is as it would be without.
 */
package dev.parallax.springboot;
