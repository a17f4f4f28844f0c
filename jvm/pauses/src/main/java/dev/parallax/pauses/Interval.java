package dev.parallax.pauses;

import java.util.OptionalLong;

/**
 * What one series recorded between two reads, and the pauses in the meantime.
 *
 * @param lengthNs       from one read to the next, pauses included, in nanoseconds.
 * @param counts         operations that ended, by bucket of their duration; not changed and not kept.
 * @param pausesNs       the length of each pause that ended in the interval, in nanoseconds.
 * @param inFlightChange by how many more operations were in flight at its end than at its beginning; empty if they are
 *                       not counted. It matters if operations take longer than an interval: what has begun and not
 *                       ended was requested nevertheless.
 */
public record Interval(long lengthNs, long[] counts, long[] pausesNs, OptionalLong inFlightChange) {

    /** Operations begun, as far as is known. */
    long begun() {
        long ended = 0;
        for (final long count : counts) {
            ended += count;
        }
        return Math.max(0, ended + inFlightChange.orElse(0));
    }

    long pausedNs() {
        long sum = 0;
        for (final long pauseNs : pausesNs) {
            sum += pauseNs;
        }
        return sum;
    }
}
