package dev.parallax.recorder;

import java.util.List;
import java.util.Map;

/**
 * All series of one name, as they were when they were read.
 *
 * @param name as it was described
 * @param unit as it was described
 * @param help as it was described
 * @param kind what they are of
 * @param sinceEpochMs when the name was first used, by the wall clock; counts are from then on
 * @param points one for each combination of labels, no two of the same
 */
public record Family(String name, String unit, String help, Kind kind, long sinceEpochMs, List<Point> points) {
    /** One series' value. */
    public sealed interface Point permits Value, Spread {
        /**
         * What tells it from the others.
         *
         * @return names and values, those that were bound at the start first; a value may be empty
         */
        Map<String, String> labels();

        /**
         * What came since an earlier reading, of what {@link Kind#onlyGrows()}.
         *
         * @param earlier of the same name and labels; null where there was none
         * @return the interval between the two; all of this where it began anew meanwhile, see {@link Distribution#since}
         */
        Point since(Point earlier);
    }

    /**
     * Of a counter or a gauge.
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
     * Of durations or amounts.
     *
     * @param labels names and values
     * @param distribution in seconds, or in the series' unit
     */
    public record Spread(Map<String, String> labels, Distribution distribution) implements Point {
        @Override
        public Spread since(Point earlier) {
            return earlier instanceof Spread before ? new Spread(labels, distribution.since(before.distribution)) : this;
        }
    }
}
