package dev.parallax.pauses;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

/** Performance data that was made up, altered or cut: read, or refused with a reason; never anything else. */
final class PerfDataTest {
    private static final String NAME = "sun.rt.safepoints";
    private static final int SIZE = 1024;

    @Test
    void both_byte_orders_are_read() throws Exception {
        for (final ByteOrder order : new ByteOrder[] {ByteOrder.BIG_ENDIAN, ByteOrder.LITTLE_ENDIAN}) {
            final PerfData data = PerfData.of(memory(order));
            assertEquals(0x0123456789abcdefL, data.read(data.offsetOf(NAME)));
        }
    }

    @Test
    void a_name_that_begins_alike_is_another_counter() throws Exception {
        final PerfData data = PerfData.of(memory(ByteOrder.LITTLE_ENDIAN));
        assertThrows(PerfData.NotPerfData.class, () -> data.offsetOf("sun.rt.safepoint"));
        assertThrows(PerfData.NotPerfData.class, () -> data.offsetOf("sun.rt.safepointsX"));
    }

    @Test
    void every_wrong_field_is_named() {
        check("mark", 0, (byte) 0xcb);
        check("byte order", 4, (byte) 2);
        check("version 3", 5, (byte) 3);
        check("not accessible", 7, (byte) 0);
        checkInt("claims 2000 of its 1024 bytes", 8, 2_000);
        checkInt("claims -1 of", 8, -1);
        checkInt("first entry at 8", 24, 8);
        checkInt("first entry at -32", 24, -32);
        checkInt("claims 1000000 entries", 28, 1_000_000);
        checkInt("claims -1 entries", 28, -1);
        checkInt("entry 0 of length 0", 32, 0);
        checkInt("entry 0 of length -56", 32, -56);
        checkInt("entry 0 of length 2147483647", 32, Integer.MAX_VALUE);
        checkInt("name of entry 0 outside", 36, 56);
        checkInt("name of entry 0 outside", 36, -20);
        checkInt("other than one long", 40, 7);
        check("other than one long", 44, (byte) 'B');
        checkInt("value of sun.rt.safepoints outside", 48, 49);
        checkInt("value of sun.rt.safepoints outside", 48, -1);
        checkInt("value of sun.rt.safepoints outside", 48, Integer.MAX_VALUE);
        checkInt("astride", 48, 44);
    }

    /** Any bytes give a result or a reason. */
    @Test
    void any_bytes_are_read_or_refused() {
        final SplittableRandom random = new SplittableRandom(7);
        int refused = 0;
        for (int n = 0; n < 200_000; n++) {
            final ByteBuffer memory = memory(ByteOrder.LITTLE_ENDIAN);
            memory.limit(random.nextInt(4) == 0 ? random.nextInt(120) : SIZE);
            for (int change = random.nextInt(4); change >= 0; change--) {
                final int at = random.nextInt(100);
                if (at < memory.limit()) {
                    memory.put(at, (byte) random.nextInt());
                }
            }
            try {
                final PerfData data = PerfData.of(memory);
                data.read(data.offsetOf(NAME));
            } catch (final PerfData.NotPerfData e) {
                refused++;
            }
        }
        assertEquals(true, refused > 100_000 && refused < 200_000, refused + " of 200,000 refused");
    }

    private static void check(final String reason, final int at, final byte value) {
        final ByteBuffer memory = memory(ByteOrder.LITTLE_ENDIAN);
        memory.put(at, value);
        checkRefused(reason, memory);
    }

    private static void checkInt(final String reason, final int at, final int value) {
        final ByteBuffer memory = memory(ByteOrder.LITTLE_ENDIAN);
        memory.putInt(at, value);
        checkRefused(reason, memory);
    }

    private static void checkRefused(final String reason, final ByteBuffer memory) {
        final Exception refused = assertThrows(
            PerfData.NotPerfData.class, () -> PerfData.of(memory).offsetOf(NAME));
        assertEquals(true, refused.getMessage().contains(reason), refused.getMessage());
    }

    /** A prologue and one counter, in HotSpot's layout. */
    private static ByteBuffer memory(final ByteOrder order) {
        final ByteBuffer memory = ByteBuffer.allocateDirect(SIZE);
        memory.putInt(0, 0xcafec0c0);
        memory.order(order);
        memory.put(4, (byte) (order == ByteOrder.BIG_ENDIAN ? 0 : 1)).put(5, (byte) 2).put(7, (byte) 1);
        memory.putInt(8, 88).putInt(24, 32).putInt(28, 1);
        memory.putInt(32, 56).putInt(36, 20).putInt(40, 0);
        memory.put(44, (byte) 'J').put(46, (byte) 4).put(47, (byte) 2).putInt(48, 48);
        memory.put(52, NAME.getBytes(StandardCharsets.US_ASCII));
        memory.putLong(80, 0x0123456789abcdefL);
        return memory;
    }
}
