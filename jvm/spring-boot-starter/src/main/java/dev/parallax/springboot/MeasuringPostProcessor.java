package dev.parallax.springboot;

import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.core.Ordered;

/**
 * Puts what is measured in the place of a bean, when properties are bound to it and before it is used. A bean with which
 * that fails stays as it is, with one line in the log.
 */
abstract class MeasuringPostProcessor implements BeanPostProcessor, Ordered {
    private static final Log LOG = LogFactory.getLog("dev.parallax");

    /** @return {@code bean} where it is none to measure */
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

    /** After those that bind properties, whose order is near the highest. */
    @Override
    public final int getOrder() {
        return LOWEST_PRECEDENCE;
    }

    /** One line: what failed here is of no use to the application's people but as a report to us. */
    static void warn(String what, Object why) {
        LOG.warn(what + ": " + why);
    }
}
