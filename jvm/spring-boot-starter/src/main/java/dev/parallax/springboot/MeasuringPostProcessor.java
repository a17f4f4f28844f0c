package dev.parallax.springboot;

import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.core.Ordered;

/**
 * Replaces a bean by a measured one, after properties are bound to it and before it is used. If that fails, the bean
 * stays unchanged, with one line in the log.
 */
abstract class MeasuringPostProcessor implements BeanPostProcessor, Ordered {
    private static final Log LOG = LogFactory.getLog("dev.parallax");

    /** @return {@code bean} itself if it cannot be measured */
    abstract Object measured(Object bean, String name);

    @Override
    public final Object postProcessBeforeInitialization(Object bean, String name) {
        try {
            return measured(bean, name);
        } catch (RuntimeException | LinkageError thrown) {
            warn("bean '" + name + "' is not measured", thrown);
            return bean;
        }
    }

    /** After the post-processors that bind properties, whose order is near the highest. */
    @Override
    public final int getOrder() {
        return LOWEST_PRECEDENCE;
    }

    /** One line: details of a failure here are of no use to the application's users, except for reporting it to us. */
    static void warn(String what, Object why) {
        LOG.warn(what + ": " + why);
    }
}
