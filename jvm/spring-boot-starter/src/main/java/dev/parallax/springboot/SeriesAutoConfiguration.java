package dev.parallax.springboot;

import dev.parallax.recorder.Catalog;
import java.nio.file.Path;
import java.time.Duration;
import org.springframework.boot.actuate.autoconfigure.endpoint.condition.ConditionalOnAvailableEndpoint;
import org.springframework.boot.actuate.endpoint.web.annotation.WebEndpoint;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBooleanProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.convert.DurationStyle;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.env.Environment;

/**
 * Exports the series: a {@link Catalog} as a bean, which bridges to other tools use; {@code /actuator/parallax}; and a
 * run record, with {@code parallax.record.folder}. An application's own catalog is used if there is one.
 */
@AutoConfiguration
@ConditionalOnBooleanProperty(name = "parallax.enabled", matchIfMissing = true)
public class SeriesAutoConfiguration {
    /** Made by Spring. */
    public SeriesAutoConfiguration() {}

    @Bean
    @ConditionalOnMissingBean
    Catalog parallaxCatalog() {
        return new Catalog();
    }

    @Bean
    @ConditionalOnProperty("parallax.record.folder")
    RunRecord parallaxRunRecord(Catalog catalog, Environment environment) {
        Path folder = Path.of(environment.getRequiredProperty("parallax.record.folder"));
        return new RunRecord(catalog, folder, interval(environment));
    }

    /** One second if it cannot be parsed. */
    private static Duration interval(Environment environment) {
        String interval = environment.getProperty("parallax.record.interval", "1s");
        try {
            Duration parsed = DurationStyle.detectAndParse(interval);
            if (parsed.toMillis() >= 10) {
                return parsed;
            }
        } catch (IllegalArgumentException e) {
            // Logged below.
        }
        MeasuringPostProcessor.warn(
                "parallax.record.interval=" + interval, "give it a length of 10ms or more, as 1s; 1s is used");
        return Duration.ofSeconds(1);
    }

    /** If the actuator is on the class path. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass({WebEndpoint.class, ConditionalOnAvailableEndpoint.class})
    static class OfActuator {
        @Bean
        @ConditionalOnAvailableEndpoint
        ParallaxEndpoint parallaxEndpoint(Catalog catalog) {
            return new ParallaxEndpoint(catalog);
        }
    }
}
