package dev.parallax.recorder;

import java.util.List;
import java.util.Map;

/**
 * All series of one name at the time of a reading.
 *
 * @param name as described
 * @param unit as described
 * @param help as described
 * @param kind of the series
 * @param sinceEpochMs when the name was first used, in milliseconds since the epoch; totals start then
 * @param points one per combination of labels, each combination once
 */
public record Family(String name, String unit, String help, Kind kind, long sinceEpochMs, List<Point> points) {
    /** The value of one series. */
    public sealed interface Point permits Value, Histogram {
        /**
         * The labels of this series.
         *
         * @return names and values, bound labels first; a value may be empty
         */
        Map<String, String> labels();

        /**
         * The change since an earlier reading, for kinds that are {@link Kind#onlyGrows()}.
         *
         * @param earlier with the same name and labels; null if there was none
         * @return the difference, or all of this point if the series was restarted; see {@link Distribution#since}
         */
        Point since(Point earlier);
    }

    /**
     * The value of a counter or gauge.
     *
     * @param labels names and values
     * @param value in the series' unit
     */
    public record Value(Map<String, String> labels, double value) implements Point {
        @Override
        public Value since(Point earlier) {
            return earlier instanceof Value before && before.value <= value ? new Value(labels, value - before.value) : this;
        }
    }

    /**
     * The distribution of durations or amounts.
     *
     * @param labels names and values
     * @param distribution in seconds, or in the series' unit
     */
    public record Histogram(Map<String, String> labels, Distribution distribution) implements Point {
        @Override
        public Histogram since(Point earlier) {
            return earlier instanceof Histogram before ? new Histogram(labels, distribution.since(before.distribution)) : this;
        }
    }
}
