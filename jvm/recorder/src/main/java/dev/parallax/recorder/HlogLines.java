package dev.parallax.recorder;

import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.Arrays;
import java.util.Base64;
import java.util.Locale;
import java.util.zip.Deflater;
import org.HdrHistogram.Histogram;

/**
 * Formats a histogram log: HdrHistogram's interval log, version 1.3, values in nanoseconds, two significant digits.
 * HdrHistogram's reader can read it.
 *
 * <p>HdrHistogram's own writer is not used because it truncates timestamps to milliseconds: a line is matched to its
 * interval by its start, so all nine digits must be kept.
 */
public final class HlogLines {
    private HlogLines() {}

    /**
     * The header before the first line.
     *
     * @param zero start of the log on the wall clock; lines carry offsets from it
     * @return four lines
     */
    public static String header(Instant zero) {
        String seconds = String.format(Locale.ROOT, "%d.%03d", zero.getEpochSecond(), zero.getNano() / 1_000_000);
        return "#[Histogram log format version 1.3]\n"
                + "#[StartTime: " + seconds + " (seconds since epoch), " + zero + "]\n"
                + "#[BaseTime: " + seconds + " (seconds since epoch)]\n"
                + "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n";
    }

    /**
     * The line of one interval.
     *
     * @param startNs start of the interval, from the start of the log
     * @param lengthNs length of the interval
     * @param durations recorded in the interval
     * @return one line with its line feed
     */
    public static String line(long startNs, long lengthNs, Durations durations) {
        Histogram histogram = durations.toHdrHistogram();
        ByteBuffer bytes = ByteBuffer.allocate(histogram.getNeededByteBufferCapacity());
        int length = histogram.encodeIntoCompressedByteBuffer(bytes, Deflater.DEFAULT_COMPRESSION);
        String payload = Base64.getEncoder().encodeToString(Arrays.copyOf(bytes.array(), length));
        long max = histogram.getMaxValue();
        return seconds(startNs) + "," + seconds(lengthNs) + ","
                + String.format(Locale.ROOT, "%d.%06d", max / 1_000_000, max % 1_000_000) + "," + payload + "\n";
    }

    private static String seconds(long ns) {
        return String.format(Locale.ROOT, "%d.%09d", ns / 1_000_000_000, ns % 1_000_000_000);
    }
}
