package dev.parallax.springboot;

import dev.parallax.httpclient5.HttpClientMetrics;
import dev.parallax.recorder.Catalog;
import org.apache.hc.client5.http.impl.async.HttpAsyncClientBuilder;
import org.apache.hc.client5.http.impl.classic.HttpClientBuilder;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBooleanProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.http.client.HttpComponentsClientHttpRequestFactoryBuilder;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.http.client.HttpComponentsClientHttpRequestFactory;

/**
 * Clients of Apache HttpClient 5: separate times for wait, connect, handshake and exchange. {@code
 * parallax.http-client.enabled=false} switches it off. An application's own {@link HttpClientMetrics} bean is used if
 * there is one.
 */
@AutoConfiguration(after = SeriesAutoConfiguration.class)
@ConditionalOnClass({HttpClientBuilder.class, HttpAsyncClientBuilder.class})
@ConditionalOnBooleanProperty(name = {"parallax.enabled", "parallax.http-client.enabled"}, matchIfMissing = true)
public class HttpClientAutoConfiguration {
    /** Made by Spring. */
    public HttpClientAutoConfiguration() {}

    @Bean
    @ConditionalOnMissingBean
    HttpClientMetrics parallaxHttpClientMetrics() {
        return new HttpClientMetrics();
    }

    @Bean
    ShownClients parallaxShownClients(ObjectProvider<HttpClientMetrics> metrics, Catalog catalog) {
        return new ShownClients(metrics, catalog);
    }

    @Bean
    static Clients parallaxClients(ObjectProvider<HttpClientMetrics> metrics) {
        return new Clients(metrics);
    }

    /** If Spring's RestTemplate and its request factories are on the class path. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(HttpComponentsClientHttpRequestFactory.class)
    static class OfSpring {
        @Bean
        static RequestFactories parallaxRequestFactories(ObjectProvider<HttpClientMetrics> metrics) {
            return new RequestFactories(metrics);
        }
    }

    /** If Spring Boot's builders of request factories and connectors are on the class path. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(HttpComponentsClientHttpRequestFactoryBuilder.class)
    static class OfSpringBoot {
        @Bean
        static RequestFactoryBuilders parallaxRequestFactoryBuilders(ObjectProvider<HttpClientMetrics> metrics) {
            return new RequestFactoryBuilders(metrics);
        }
    }
}
