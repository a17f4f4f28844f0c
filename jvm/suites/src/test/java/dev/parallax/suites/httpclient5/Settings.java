package dev.parallax.suites.httpclient5;

import javax.net.ssl.SSLContext;
import org.apache.hc.client5.http.ConnectionKeepAliveStrategy;
import org.apache.hc.client5.http.HttpRequestRetryStrategy;
import org.apache.hc.client5.http.auth.CredentialsProvider;
import org.apache.hc.client5.http.config.ConnectionConfig;
import org.apache.hc.client5.http.config.RequestConfig;
import org.apache.hc.client5.http.impl.DefaultHttpRequestRetryStrategy;
import org.apache.hc.client5.http.impl.async.HttpAsyncClientBuilder;
import org.apache.hc.client5.http.impl.auth.BasicCredentialsProvider;
import org.apache.hc.client5.http.impl.classic.HttpClientBuilder;
import org.apache.hc.client5.http.impl.io.PoolingHttpClientConnectionManager;
import org.apache.hc.client5.http.impl.io.PoolingHttpClientConnectionManagerBuilder;
import org.apache.hc.client5.http.impl.nio.PoolingAsyncClientConnectionManager;
import org.apache.hc.client5.http.impl.nio.PoolingAsyncClientConnectionManagerBuilder;
import org.apache.hc.client5.http.ssl.DefaultClientTlsStrategy;
import org.apache.hc.core5.http.ConnectionReuseStrategy;
import org.apache.hc.core5.http.HttpHost;
import org.apache.hc.core5.http.impl.DefaultConnectionReuseStrategy;
import org.apache.hc.core5.pool.PoolConcurrencyPolicy;
import org.apache.hc.core5.util.TimeValue;
import org.apache.hc.core5.util.Timeout;

/** What a scenario configures, for either kind of client. */
final class Settings {
    int maxTotal = 10;
    int maxPerRoute = 5;
    PoolConcurrencyPolicy policy = PoolConcurrencyPolicy.STRICT;
    TimeValue timeToLive;
    TimeValue validateAfter;
    TimeValue evictIdleAfter;
    boolean isContinueExpected;
    Timeout patience = Timeout.ofSeconds(20);
    HttpRequestRetryStrategy retries = new DefaultHttpRequestRetryStrategy(0, TimeValue.ZERO_MILLISECONDS);
    CredentialsProvider credentials = new BasicCredentialsProvider();
    ConnectionReuseStrategy reuse = DefaultConnectionReuseStrategy.INSTANCE;
    ConnectionKeepAliveStrategy keepAlive = (response, context) -> TimeValue.NEG_ONE_MILLISECOND;
    HttpHost proxy;
    SSLContext tls;

    Settings with(PoolConcurrencyPolicy other) {
        policy = other;
        return this;
    }

    PoolingHttpClientConnectionManager classicManager() {
        PoolingHttpClientConnectionManagerBuilder builder = PoolingHttpClientConnectionManagerBuilder.create()
                .setMaxConnTotal(maxTotal)
                .setMaxConnPerRoute(maxPerRoute)
                .setPoolConcurrencyPolicy(policy)
                .setDefaultConnectionConfig(connection());
        if (tls != null) {
            builder.setTlsSocketStrategy(new DefaultClientTlsStrategy(tls));
        }
        return builder.build();
    }

    PoolingAsyncClientConnectionManager asyncManager() {
        PoolingAsyncClientConnectionManagerBuilder builder = PoolingAsyncClientConnectionManagerBuilder.create()
                .setMaxConnTotal(maxTotal)
                .setMaxConnPerRoute(maxPerRoute)
                .setPoolConcurrencyPolicy(policy)
                .setDefaultConnectionConfig(connection());
        if (tls != null) {
            builder.setTlsStrategy(new DefaultClientTlsStrategy(tls));
        }
        return builder.build();
    }

    private ConnectionConfig connection() {
        ConnectionConfig.Builder config = ConnectionConfig.custom().setConnectTimeout(Timeout.ofSeconds(20));
        if (timeToLive != null) {
            config.setTimeToLive(timeToLive);
        }
        if (validateAfter != null) {
            config.setValidateAfterInactivity(validateAfter);
        }
        return config.build();
    }

    private RequestConfig request() {
        return RequestConfig.custom()
                .setConnectionRequestTimeout(patience)
                .setResponseTimeout(Timeout.ofSeconds(20))
                .setExpectContinueEnabled(isContinueExpected)
                .build();
    }

    HttpClientBuilder apply(HttpClientBuilder builder) {
        if (evictIdleAfter != null) {
            builder.evictExpiredConnections().evictIdleConnections(evictIdleAfter);
        }
        return builder.setDefaultRequestConfig(request())
                .setRetryStrategy(retries)
                .setDefaultCredentialsProvider(credentials)
                .setConnectionReuseStrategy(reuse)
                .setKeepAliveStrategy(keepAlive)
                .setProxy(proxy);
    }

    HttpAsyncClientBuilder apply(HttpAsyncClientBuilder builder) {
        if (evictIdleAfter != null) {
            builder.evictExpiredConnections().evictIdleConnections(evictIdleAfter);
        }
        return builder.setDefaultRequestConfig(request())
                .setRetryStrategy(retries)
                .setDefaultCredentialsProvider(credentials)
                .setConnectionReuseStrategy(reuse)
                .setKeepAliveStrategy(keepAlive)
                .setProxy(proxy);
    }
}
