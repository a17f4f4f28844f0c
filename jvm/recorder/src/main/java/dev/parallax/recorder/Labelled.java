package dev.parallax.recorder;

import java.util.List;

/**
 * A {@link Recorder} for each combination of labels, up to a limit; what comes beyond is counted in {@link #other()}.
 *
 * <p>Labels that are known from the start are bound once: keep the recorder that {@link #row(String)} returns. Those that
 * are known only after the event, as a status or a route, are looked up each time: no lock, no allocation, and a row is
 * never given up nor mistaken for another's.
 *
 * <p>Cost: as of {@link Rows}, which this is of recorders.
 */
public final class Labelled {
    private final Rows<Recorder> rows;

    /**
     * One combination of labels.
     *
     * @param values in the order of the names; empty where the event had none
     * @param recorder its durations
     */
    public record Row(List<String> values, Recorder recorder) {}

    /**
     * Without a row yet.
     *
     * @param limit how many rows there may be; memory is for all threads of all rows
     * @param names of the labels, each once
     */
    public Labelled(int limit, String... names) {
        rows = new Rows<>(limit, Recorder::new, names);
    }

    /**
     * The recorder of these labels.
     *
     * @param a the value of the one label; null counts as empty
     * @return its own, or {@link #other()} where there are as many rows as may be
     */
    public Recorder row(String a) {
        return rows.row(a);
    }

    /**
     * The recorder of these labels.
     *
     * @param a the value of the first label; null counts as empty
     * @param b that of the second
     * @return its own, or {@link #other()} where there are as many rows as may be
     */
    public Recorder row(String a, String b) {
        return rows.row(a, b);
    }

    /**
     * The recorder of these labels.
     *
     * @param a the value of the first label; null counts as empty
     * @param b that of the second
     * @param c that of the third
     * @return its own, or {@link #other()} where there are as many rows as may be
     */
    public Recorder row(String a, String b, String c) {
        return rows.row(a, b, c);
    }

    /**
     * The recorder of any number of labels: see {@link Rows#rowOf(String[])}.
     *
     * @param values in the order of the names, in an array that the caller may use again
     * @return its own, or {@link #other()} where there are as many rows as may be
     */
    public Recorder rowOf(String[] values) {
        return rows.rowOf(values);
    }

    /**
     * The labels' names.
     *
     * @return in order
     */
    public List<String> names() {
        return rows.names();
    }

    /**
     * What came when there was no row left.
     *
     * @return always the same
     */
    public Recorder other() {
        return rows.other();
    }

    /**
     * The rows so far.
     *
     * @return a copy, in the order in which they came
     */
    public List<Row> rows() {
        return rows.rows().stream().map(row -> new Row(row.values(), row.series())).toList();
    }

    Rows<Recorder> asRows() {
        return rows;
    }
}
