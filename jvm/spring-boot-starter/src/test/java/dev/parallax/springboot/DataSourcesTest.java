package dev.parallax.springboot;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import dev.parallax.hikaricp.MeasuredDataSource;
import dev.parallax.hikaricp.PoolMetrics;
import dev.parallax.recorder.Catalog;
import dev.parallax.recorder.Description;
import dev.parallax.recorder.Durations;
import dev.parallax.recorder.Family;
import dev.parallax.recorder.Recorder;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.beans.factory.ObjectFactory;
import org.springframework.beans.factory.config.CustomScopeConfigurer;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Scope;
import org.springframework.context.annotation.ScopedProxyMode;
import org.springframework.jdbc.core.JdbcTemplate;

/** Data sources of every kind, each with a pool of one, of H2 with a password. */
class DataSourcesTest {
    private static final String[] POOL_OF_ONE = {
        "spring.datasource.url=jdbc:h2:mem:one",
        "spring.datasource.username=me",
        "spring.datasource.password=secret",
        "spring.datasource.hikari.maximum-pool-size=1",
        "spring.datasource.hikari.pool-name=planted"
    };

    @Test
    void springBootsOwnIsMeasured() throws Exception {
        DataSource left;
        try (ConfigurableApplicationContext service = Service.start(POOL_OF_ONE)) {
            MeasuredDataSource source = assertInstanceOf(MeasuredDataSource.class, service.getBean(DataSource.class));
            left = source;
            assertSame(source, service.getBean(HikariDataSource.class));
            assertEquals("planted", source.getPoolName());
            check(source, service.getBean(MeasuredPools.class).pools().get("dataSource"), true);
            assertEquals(2, service.getBean(JdbcTemplate.class).queryForObject("select 2", Integer.class));
            checkSpringBootsMeters(service, 3);
            assertEquals(metersWithoutUs(), meters(service));
        }
        assertTrue(((HikariDataSource) left).isClosed());
    }

    /** If this fails, an application whose database is down does not even start. */
    @Test
    void aPoolStartsNoSoonerThanItWould() {
        try (ConfigurableApplicationContext service = Service.start("spring.datasource.url=jdbc:h2:tcp://localhost:1/down")) {
            MeasuredDataSource source = service.getBean(MeasuredDataSource.class);
            assertNull(source.getHikariPoolMXBean());
        }
    }

    @Test
    void aPoolThatRunsAlreadyIsMeasured() throws Exception {
        HikariDataSource raw = new HikariDataSource(config("running"));
        try (ConfigurableApplicationContext service = Service.start(Running.class)) {
            HikariDataSource source = service.getBean(HikariDataSource.class);
            check(source, service.getBean(MeasuredPools.class).pools().get("running"), false);
            checkSpringBootsMeters(service, 2);
            MeterRegistry meters = service.getBean(MeterRegistry.class);
            assertEquals(0, meters.get("jdbc.connections.active").gauge().value());
            assertFalse(source.isClosed());
            raw.close();
        }
        assertTrue(Running.made.isClosed());
    }

    @Configuration(proxyBeanMethods = false)
    static class Running {
        static HikariDataSource made;

        @Bean
        HikariDataSource running() throws SQLException {
            made = new HikariDataSource(config("running"));
            made.getConnection().close();
            return made;
        }
    }

    @Test
    void kindsOfTheApplicationsOwnAreMeasured() throws Exception {
        try (ConfigurableApplicationContext service = Service.start(Kinds.class)) {
            MeasuredPools pools = service.getBean(MeasuredPools.class);
            Kinds.Own own = service.getBean(Kinds.Own.class);
            assertEquals("mine", own.mine());
            check(own, pools.pools().get("own"), false);
            MeasuredDataSource byHand = service.getBean("byHand", MeasuredDataSource.class);
            assertSame(byHand.metrics(), pools.pools().get("byHand"));
            assertSame(HikariDataSource.class, service.getBean("each").getClass());
            assertEquals(2, pools.pools().size());
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Kinds {
        static class Own extends HikariDataSource {
            String mine() {
                return "mine";
            }
        }

        @Bean
        Own own() {
            Own own = new Own();
            config("own").copyStateTo(own);
            return own;
        }

        @Bean
        MeasuredDataSource byHand() {
            return new MeasuredDataSource(config("byHand"));
        }

        @Bean
        @Scope("prototype")
        HikariDataSource each() {
            return new HikariDataSource();
        }
    }

    @Test
    void whatSpringShallNotCloseStaysOpen() {
        MeasuredDataSource source;
        try (ConfigurableApplicationContext service = Service.start(Kept.class)) {
            source = service.getBean(MeasuredDataSource.class);
        }
        assertFalse(source.isClosed());
        source.close();
    }

    @Configuration(proxyBeanMethods = false)
    static class Kept {
        @Bean(destroyMethod = "")
        HikariDataSource kept() {
            HikariDataSource kept = new HikariDataSource();
            config("kept").copyStateTo(kept);
            return kept;
        }
    }

    /** If this fails, each refresh of its scope holds one more pool that is closed, and shows it. */
    @Test
    void ofABeanThatIsMadeAgainTheLastIsShown() throws Exception {
        Again.made = new Refreshed();
        try (ConfigurableApplicationContext service = Service.start(Again.class)) {
            Catalog catalog = service.getBean(Catalog.class);
            for (int n = 0; n < 3; n++) {
                HikariDataSource target = service.getBean("scopedTarget.anew", HikariDataSource.class);
                service.getBean("anew", HikariDataSource.class).getConnection().close();
                assertEquals(Set.of("anew"), service.getBean(MeasuredPools.class).pools().keySet());
                assertEquals(n + 1, uses(catalog), "with those of the pools before");
                Again.made.refresh();
                assertTrue(target.isClosed());
            }
        }
    }

    /** If this fails, the record lacks what pools made, or all series from the first pool that was made again. */
    @Test
    void aRunRecordHasTheConnectionsOfAllPoolsOfAName(@TempDir Path folder) throws Exception {
        Again.made = new Refreshed();
        int madeByAll = 0;
        try (ConfigurableApplicationContext service = Service.start(Again.class)) {
            Catalog catalog = service.getBean(Catalog.class);
            RunRecord record = new RunRecord(catalog, folder, Duration.ofHours(1));
            record.start();
            Recorder beside = catalog.durations(Description.of("beside", "What has nothing to do with it."));
            for (int size : new int[] {1, 4, 4}) {
                Again.size = size;
                HikariDataSource pool = service.getBean("scopedTarget.anew", HikariDataSource.class);
                for (int n = 0; n < size; n++) {
                    pool.getConnection();
                }
                madeByAll += size;
                beside.record(1_000_000);
                record.write();
                Again.made.refresh();
            }
            record.stop();
        } finally {
            Again.size = 1;
        }
        Path record = Seen.only(folder);
        assertEquals(3, Seen.count(record, "beside"));
        assertEquals(madeByAll, Seen.count(record, "db.client.connection.create_time-anew"));
    }

    private static long uses(Catalog catalog) {
        return catalog.read().stream()
                .filter(family -> family.name().equals("db.client.connection.use_time"))
                .flatMap(family -> family.points().stream())
                .mapToLong(point -> ((Family.Histogram) point).distribution().count())
                .sum();
    }

    @Configuration(proxyBeanMethods = false)
    static class Again {
        static Refreshed made;
        static int size = 1;

        @Bean
        static CustomScopeConfigurer scopes() {
            CustomScopeConfigurer scopes = new CustomScopeConfigurer();
            scopes.addScope("refreshed", made);
            return scopes;
        }

        @Bean
        @Scope(value = "refreshed", proxyMode = ScopedProxyMode.TARGET_CLASS)
        HikariDataSource anew() {
            HikariDataSource anew = new HikariDataSource();
            config("anew").copyStateTo(anew);
            anew.setMaximumPoolSize(size);
            return anew;
        }
    }

    /** Its beans live until it is refreshed, as those of Spring Cloud's scope do. */
    private static final class Refreshed implements org.springframework.beans.factory.config.Scope {
        private final Map<String, Object> beans = new HashMap<>();
        private final List<Runnable> ends = new ArrayList<>();

        @Override
        public Object get(String name, ObjectFactory<?> factory) {
            Object bean = beans.get(name);
            if (bean == null) {
                bean = factory.getObject();
                beans.put(name, bean);
            }
            return bean;
        }

        @Override
        public Object remove(String name) {
            return beans.remove(name);
        }

        @Override
        public void registerDestructionCallback(String name, Runnable end) {
            ends.add(end);
        }

        void refresh() {
            ends.forEach(Runnable::run);
            ends.clear();
            beans.clear();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"parallax.enabled=false", "parallax.data-source.enabled=false"})
    void aPropertySwitchesItOff(String property) {
        try (ConfigurableApplicationContext service = Service.start(property)) {
            assertSame(HikariDataSource.class, service.getBean(DataSource.class).getClass());
        }
    }

    private static HikariConfig config(String name) {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl("jdbc:h2:mem:" + name);
        config.setUsername("me");
        config.setPassword("secret");
        config.setMaximumPoolSize(1);
        config.setPoolName(name);
        return config;
    }

    /** One uses the connection for 300 us, after another who waits for it got it when the first had it for 50 ms. */
    private static void check(HikariDataSource source, PoolMetrics metrics, boolean hasCreations) throws Exception {
        assertNotNull(metrics);
        Durations usesBefore = metrics.uses().total();
        Durations waitsBefore = metrics.waits().total();
        long askedNs = System.nanoTime();
        long hasNs;
        long endsNs;
        try (Connection connection = source.getConnection()) {
            hasNs = System.nanoTime();
            while (System.nanoTime() - hasNs < 300_000) {
                Thread.onSpinWait();
            }
            assertTrue(connection.isValid(1));
            endsNs = System.nanoTime();
        }
        long backNs = System.nanoTime();
        Durations uses = metrics.uses().total().since(usesBefore);
        assertEquals(1, uses.count());
        long useNs = uses.sumNs();
        assertTrue(endsNs - hasNs <= useNs && useNs <= backNs - askedNs, useNs + " ns in " + (backNs - askedNs));

        Connection held = source.getConnection();
        ExecutorService other = Executors.newSingleThreadExecutor();
        try {
            Future<Long> waiter = other.submit(() -> {
                long waitsFromNs = System.nanoTime();
                source.getConnection().close();
                return System.nanoTime() - waitsFromNs;
            });
            Seen.until("one waits", () -> metrics.pending() == 1);
            long pendingNs = System.nanoTime();
            Thread.sleep(50);
            long heldNs = System.nanoTime() - pendingNs;
            held.close();
            long waitedNs = waiter.get(5, TimeUnit.SECONDS);
            Durations waits = metrics.waits().total().since(waitsBefore);
            assertEquals(3, waits.count());
            long longest = waits.atRank(3).getAsLong();
            // Accurate to one part in 128, upwards; Hikari's own timestamp comes a little after the caller is counted
            // as waiting.
            assertTrue(longest >= heldNs - 5_000_000 && longest <= waitedNs * 1.01, longest + " ns of " + waitedNs);
        } finally {
            other.shutdown();
        }
        assertEquals(hasCreations ? 1 : 0, metrics.creations().total().count() > 0 ? 1 : 0);
        assertEquals(0, metrics.unseenUses());
    }

    /** Its own tracker and gauges go on being reported. */
    private static void checkSpringBootsMeters(ConfigurableApplicationContext service, int uses) {
        MeterRegistry meters = service.getBean(MeterRegistry.class);
        assertTrue(meters.get("hikaricp.connections.acquire").timer().count() >= uses);
        assertEquals(1, meters.get("jdbc.connections.max").gauge().value());
    }

    private static Set<String> metersWithoutUs() throws SQLException {
        try (ConfigurableApplicationContext service = Service.start(
                Stream.concat(Stream.of(POOL_OF_ONE), Stream.of("parallax.enabled=false")).toArray(String[]::new))) {
            service.getBean(DataSource.class).getConnection().close();
            return meters(service);
        }
    }

    private static Set<String> meters(ConfigurableApplicationContext service) {
        Set<String> names = new TreeSet<>();
        for (Meter meter : service.getBean(MeterRegistry.class).getMeters()) {
            String name = meter.getId().getName();
            if (name.startsWith("jdbc") || name.startsWith("hikaricp")) {
                names.add(name + meter.getId().getTags());
            }
        }
        assertTrue(names.size() > 5, names.toString());
        return names;
    }
}
