package dev.parallax.springboot;

import com.zaxxer.hikari.HikariDataSource;
import com.zaxxer.hikari.metrics.MetricsTrackerFactory;
import dev.parallax.hikaricp.MeasuredPool;
import java.lang.reflect.Field;
import java.sql.Connection;
import org.aopalliance.intercept.MethodInterceptor;
import org.aopalliance.intercept.MethodInvocation;
import org.springframework.aop.framework.ProxyFactory;

/** A data source of the same class, whose connections are lent by a {@link MeasuredPool}. */
final class PoolProxy implements MethodInterceptor {
    private final MeasuredPool measured;

    private PoolProxy(MeasuredPool measured) {
        this.measured = measured;
    }

    static Object of(HikariDataSource source, MeasuredPool measured) {
        ProxyFactory factory = new ProxyFactory(source);
        factory.setProxyTargetClass(true);
        factory.addAdvice(new PoolProxy(measured));
        Object proxy = factory.getProxy(source.getClass().getClassLoader());
        showPool(source, proxy);
        return proxy;
    }

    /** Spring Boot's gauges of a pool read this field directly, not through the proxy. */
    private static void showPool(HikariDataSource source, Object proxy) {
        try {
            Field pool = HikariDataSource.class.getDeclaredField("pool");
            pool.setAccessible(true);
            pool.set(proxy, pool.get(source));
        } catch (ReflectiveOperationException | RuntimeException e) {
            // Then these gauges have no value.
        }
    }

    @Override
    public Object invoke(MethodInvocation call) throws Throwable {
        Object[] arguments = call.getArguments();
        return switch (call.getMethod().getName()) {
            case "getConnection" -> arguments.length == 0 ? measured.getConnection() : call.proceed();
            case "evictConnection" -> {
                measured.evictConnection((Connection) arguments[0]);
                yield null;
            }
            case "getMetricsTrackerFactory" -> measured.getMetricsTrackerFactory();
            case "setMetricsTrackerFactory" -> {
                measured.setMetricsTrackerFactory((MetricsTrackerFactory) arguments[0]);
                yield null;
            }
            case "setMetricRegistry" -> {
                measured.setMetricRegistry(arguments[0]);
                yield null;
            }
            default -> call.proceed();
        };
    }
}
