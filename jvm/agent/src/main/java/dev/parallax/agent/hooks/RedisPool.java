package dev.parallax.agent.hooks;

import dev.parallax.agent.report.Reader;
import dev.parallax.agent.report.Series;
import dev.parallax.recorder.Recorder;

/** What is measured of one pool of connections to Redis. */
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

    /** @param waitSeries what a wait consists of */
    RedisPool(String name, Series waitSeries) {
        this.name = name;
        this.waitSeries = waitSeries;
    }

    String name() {
        return name;
    }

    /** @param madeNs of the wait how long it took to make the connection */
    void lends(Object connection, long askedNs, long madeNs) {
        long nowNs = System.nanoTime();
        waits.record(askedNs, nowNs - madeNs);
        lent.put(connection, nowNs);
    }

    void timesOut(long askedNs) {
        timeouts.recordSince(askedNs);
    }

    void fails(long askedNs) {
        failures.recordSince(askedNs);
    }

    void made(long ns) {
        creations.record(ns);
    }

    void notMade(long ns) {
        failedCreations.record(ns);
    }

    /** Since when it is lent, for {@link #used}; null where that is not known. From here on somebody else may have it. */
    Long back(Object connection) {
        return lent.take(connection);
    }

    void used(long lentNs) {
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
