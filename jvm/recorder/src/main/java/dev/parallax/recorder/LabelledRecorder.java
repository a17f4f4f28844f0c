package dev.parallax.recorder;

import java.util.List;

/**
 * One {@link Recorder} per combination of labels, up to a limit; everything beyond it is recorded in {@link #other()}.
 *
 * <p>If label values are known in advance, look up {@link #row(String)} once and keep the recorder. Values known only
 * after the event, such as a status or a route, are looked up each time, without a lock or an allocation. A row is
 * never evicted or mixed up with another.
 *
 * <p>Cost: that of {@link Rows}.
 */
public final class LabelledRecorder {
    private final Rows<Recorder> rows;

    /**
     * One combination of labels.
     *
     * @param values in the order of the names; empty strings for missing values
     * @param recorder its durations
     */
    public record Row(List<String> values, Recorder recorder) {}

    /**
     * Starts without rows.
     *
     * @param limit maximum number of rows; each takes memory for every thread that records in it
     * @param names of the labels, each once
     */
    public LabelledRecorder(int limit, String... names) {
        rows = new Rows<>(limit, Recorder::new, names);
    }

    /**
     * Returns the recorder for these labels.
     *
     * @param a value of the only label; null counts as empty
     * @return its own recorder, or {@link #other()} once the limit is reached
     */
    public Recorder row(String a) {
        return rows.row(a);
    }

    /**
     * Returns the recorder for these labels.
     *
     * @param a value of the first label; null counts as empty
     * @param b value of the second
     * @return its own recorder, or {@link #other()} once the limit is reached
     */
    public Recorder row(String a, String b) {
        return rows.row(a, b);
    }

    /**
     * Returns the recorder for these labels.
     *
     * @param a value of the first label; null counts as empty
     * @param b value of the second
     * @param c value of the third
     * @return its own recorder, or {@link #other()} once the limit is reached
     */
    public Recorder row(String a, String b, String c) {
        return rows.row(a, b, c);
    }

    /**
     * Returns the recorder for any number of labels: see {@link Rows#rowOf(String[])}.
     *
     * @param values in the order of the names; the caller may reuse the array
     * @return its own recorder, or {@link #other()} once the limit is reached
     */
    public Recorder rowOf(String[] values) {
        return rows.rowOf(values);
    }

    /**
     * Names of the labels.
     *
     * @return in order
     */
    public List<String> names() {
        return rows.names();
    }

    /**
     * The recorder for everything beyond the limit.
     *
     * @return always the same object
     */
    public Recorder other() {
        return rows.other();
    }

    /**
     * The rows so far.
     *
     * @return a copy, in the order of creation
     */
    public List<Row> rows() {
        return rows.rows().stream().map(row -> new Row(row.values(), row.series())).toList();
    }

    Rows<Recorder> asRows() {
        return rows;
    }
}
