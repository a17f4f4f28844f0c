package dev.parallax.suites.hikaricp;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import dev.parallax.hikaricp.MeasuredDataSource;
import dev.parallax.suites.AgentEndpoint;
import dev.parallax.suites.Run;
import java.util.List;

/** The ways to measure a pool. All have the same scenarios, with the same expectations. */
enum Arm {
    /** Not at all: what the others have to be like. */
    PLAIN,
    /** A measured data source in the pool's place. */
    MEASURED,
    /** A pool that runs already. */
    ATTACHED,
    /** The agent alone. */
    AGENT;

    /** Found before any test listens on a port. */
    static final AgentEndpoint ENDPOINT = Run.now() == Run.AGENT ? AgentEndpoint.find() : null;

    /** Those of this JVM. */
    static List<Arm> here() {
        return ENDPOINT != null ? List.of(AGENT) : List.of(PLAIN, MEASURED, ATTACHED);
    }

    HikariDataSource pool() {
        return this == MEASURED ? new MeasuredDataSource() : new HikariDataSource();
    }

    HikariDataSource pool(HikariConfig config) {
        return this == MEASURED ? new MeasuredDataSource(config) : new HikariDataSource(config);
    }
}
