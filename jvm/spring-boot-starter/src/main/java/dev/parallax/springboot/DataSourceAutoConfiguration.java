package dev.parallax.springboot;

import com.zaxxer.hikari.HikariDataSource;
import dev.parallax.recorder.Catalog;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBooleanProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.context.annotation.Bean;

/**
 * Data sources of HikariCP: wait, test, suspension, use and creation apart, in nanoseconds. {@code
 * parallax.data-source.enabled=false} switches it off.
 */
@AutoConfiguration(after = SeriesAutoConfiguration.class)
@ConditionalOnClass(HikariDataSource.class)
@ConditionalOnBooleanProperty(name = {"parallax.enabled", "parallax.data-source.enabled"}, matchIfMissing = true)
public class DataSourceAutoConfiguration {
    /** Made by Spring. */
    public DataSourceAutoConfiguration() {}

    @Bean
    MeasuredPools parallaxPools(Catalog catalog) {
        return new MeasuredPools(catalog);
    }

    @Bean
    static DataSources parallaxDataSources(ObjectProvider<MeasuredPools> pools, ConfigurableListableBeanFactory beans) {
        return new DataSources(pools, beans);
    }
}
