package dev.parallax.springboot;

import com.zaxxer.hikari.HikariDataSource;
import dev.parallax.hikaricp.MeasuredDataSource;
import dev.parallax.hikaricp.MeasuredPool;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Map;
import org.springframework.aop.scope.ScopedProxyUtils;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.beans.factory.config.DestructionAwareBeanPostProcessor;

/**
 * Data sources of HikariCP. One whose pool has not started is replaced by a {@link MeasuredDataSource} with the same
 * configuration, which starts when the original would have. A running pool, and an application's own subclass, is kept
 * behind a proxy of its class.
 */
final class DataSources extends MeasuringPostProcessor implements DestructionAwareBeanPostProcessor {
    private final ObjectProvider<MeasuredPools> pools;
    private final ConfigurableListableBeanFactory beans;

    /** By the bean that Spring created, which is the one that it will close. */
    private final Map<Object, MeasuredDataSource> replacements = Collections.synchronizedMap(new IdentityHashMap<>());

    DataSources(ObjectProvider<MeasuredPools> pools, ConfigurableListableBeanFactory beans) {
        this.pools = pools;
        this.beans = beans;
    }

    @Override
    Object measured(Object bean, String beanName) {
        if (!(bean instanceof HikariDataSource source) || source.isClosed() || isOneOfMany(beanName)) {
            return bean;
        }
        // For a scope with proxies: the application's name is the proxy's.
        String name = ScopedProxyUtils.isScopedTarget(beanName)
                ? ScopedProxyUtils.getOriginalBeanName(beanName)
                : beanName;
        if (bean instanceof MeasuredDataSource measured) {
            pools.getObject().add(name, source.getPoolName(), measured.metrics());
            return bean;
        }
        if (source.getClass() == HikariDataSource.class && source.getHikariPoolMXBean() == null) {
            MeasuredDataSource measured = new MeasuredDataSource();
            source.copyStateTo(measured);
            pools.getObject().add(name, source.getPoolName(), measured.metrics());
            replacements.put(source, measured);
            return measured;
        }
        MeasuredPool measured = new MeasuredPool(source);
        Object proxy = PoolProxy.of(source, measured);
        pools.getObject().add(name, source.getPoolName(), measured.metrics());
        return proxy;
    }

    /** A prototype: it would never be removed from the list of measured pools. */
    private boolean isOneOfMany(String name) {
        return beans.containsBeanDefinition(name) && beans.getMergedBeanDefinition(name).isPrototype();
    }

    @Override
    public boolean requiresDestruction(Object bean) {
        return replacements.containsKey(bean);
    }

    @Override
    public void postProcessBeforeDestruction(Object bean, String name) {
        MeasuredDataSource measured = replacements.remove(bean);
        if (measured != null && !isKeptOpen(name)) {
            measured.close();
        }
    }

    /** {@code @Bean(destroyMethod = "")}: then Spring would not close the original either. */
    private boolean isKeptOpen(String name) {
        return beans.containsBeanDefinition(name)
                && "".equals(beans.getMergedBeanDefinition(name).getDestroyMethodName());
    }
}
