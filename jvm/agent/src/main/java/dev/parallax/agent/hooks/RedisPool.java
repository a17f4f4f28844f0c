package dev.parallax.agent.hooks;

import dev.parallax.agent.report.Reader;
import dev.parallax.agent.report.Series;
import dev.parallax.recorder.Recorder;

/** The measurements of one pool of Redis connections. */
final class RedisPool {
    private final String name;
    private final Series waitSeries;
    private final Recorder waits = new Recorder();
    private final Recorder timeouts = new Recorder();
    private final Recorder failures = new Recorder();
    private final Recorder creations = new Recorder();
    private final Recorder failedCreations = new Recorder();
    private final Recorder uses = new Recorder();
    private final Moments lent = new Moments();

    /** @param waitSeries the series for its waits */
    RedisPool(String name, Series waitSeries) {
        this.name = name;
        this.waitSeries = waitSeries;
    }

    String name() {
        return name;
    }

    /** @param madeNs part of the wait spent creating the connection */
    void recordLent(Object connection, long askedNs, long madeNs) {
        long nowNs = System.nanoTime();
        waits.record(askedNs, nowNs - madeNs);
        lent.put(connection, nowNs);
    }

    void recordTimeout(long askedNs) {
        timeouts.recordSince(askedNs);
    }

    void recordFailure(long askedNs) {
        failures.recordSince(askedNs);
    }

    void recordCreated(long ns) {
        creations.record(ns);
    }

    void recordCreateFailure(long ns) {
        failedCreations.record(ns);
    }

    /**
     * Removes and returns when the connection was lent, for {@link #recordUse}; null if unknown. Somebody else may get
     * the connection from here on.
     */
    Long takeLentNs(Object connection) {
        return lent.take(connection);
    }

    void recordUse(long lentNs) {
        uses.recordSince(lentNs);
    }

    void read(Reader reader) {
        reader.durations(waitSeries, name, waits.total());
        reader.durations(Series.DB_TIMEOUT, name, timeouts.total());
        reader.durations(Series.DB_FAILED, name, failures.total());
        reader.durations(Series.DB_CREATE, name, creations.total());
        reader.durations(Series.DB_CREATE_FAILED, name, failedCreations.total());
        reader.durations(Series.DB_USE, name, uses.total());
    }
}
