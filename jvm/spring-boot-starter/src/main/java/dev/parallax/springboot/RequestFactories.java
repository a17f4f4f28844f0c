package dev.parallax.springboot;

import dev.parallax.httpclient5.HttpClientMetrics;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.http.client.AbstractClientHttpRequestFactoryWrapper;
import org.springframework.http.client.ClientHttpRequestFactory;
import org.springframework.http.client.HttpComponentsClientHttpRequestFactory;
import org.springframework.http.client.support.HttpAccessor;

/** Request factories created by the application itself, and those inside its RestTemplates. */
final class RequestFactories extends MeasuringPostProcessor {
    private final ObjectProvider<HttpClientMetrics> metrics;

    RequestFactories(ObjectProvider<HttpClientMetrics> metrics) {
        this.metrics = metrics;
    }

    @Override
    Object measured(Object bean, String name) {
        if (bean instanceof ClientHttpRequestFactory factory) {
            measure(factory, name);
        } else if (bean instanceof HttpAccessor template) {
            measure(template.getRequestFactory(), name);
        }
        return bean;
    }

    private void measure(ClientHttpRequestFactory outer, String name) {
        ClientHttpRequestFactory factory = outer;
        while (factory instanceof AbstractClientHttpRequestFactoryWrapper wrapper) {
            factory = wrapper.getDelegate();
        }
        if (factory instanceof HttpComponentsClientHttpRequestFactory components
                && components.getHttpClient() instanceof CloseableHttpClient client) {
            Clients.install(metrics.getObject(), client, name);
        }
    }
}
