package dev.parallax.recorder;

import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.Arrays;
import java.util.Base64;
import java.util.Locale;
import java.util.zip.Deflater;
import org.HdrHistogram.Histogram;

/**
 * The text of a histogram log: HdrHistogram's interval log, version 1.3, values in nanoseconds, two significant digits.
 *
 * <p>Lines are written here and not by HdrHistogram's own writer, which keeps milliseconds of a timestamp: a line is
 * matched to its interval by its start, so all nine digits must survive. HdrHistogram's reader reads them.
 */
public final class HlogLines {
    private HlogLines() {}

    /**
     * What stands before the first line.
     *
     * @param zero the log's zero on the wall clock; lines begin at offsets from it
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
     * @param startNs when it began, from the log's zero
     * @param lengthNs how long it was
     * @param durations what was recorded in it
     * @return with its line feed
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
