package dev.parallax.pauses;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.OptionalLong;

/**
 * HotSpot's performance data, version 2: a prologue of 32 bytes, then entries that each carry a name and a value.
 * <p>
 * Laid out in {@code perfMemory.hpp} of the JDK. The memory is input from outside, which a stray or hostile file may
 * imitate: no number in it is used before it has been checked against the memory's own size.
 */
final class PerfData {
    private static final int MAGIC = 0xcafec0c0;
    private static final int MAJOR_VERSION = 2;
    private static final int PROLOGUE_BYTES = 32;
    private static final int ENTRY_HEAD_BYTES = 20;
    private static final int BYTE_ORDER_AT = 4;
    private static final int MAJOR_VERSION_AT = 5;
    private static final int ACCESSIBLE_AT = 7;
    private static final int USED_AT = 8;
    private static final int ENTRY_OFFSET_AT = 24;
    private static final int ENTRY_COUNT_AT = 28;

    /** A constant, because a handle in a field is not compiled to a load. */
    private static final VarHandle NATIVE_LONGS =
        MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());

    private final ByteBuffer memory;
    private final boolean swapped;
    private final int firstEntry;
    private final int entryCount;
    /** The end of the entries: the JVM may use more later, so this is what it used at the time of opening. */
    private final int end;

    private PerfData(final ByteBuffer memory, final int firstEntry, final int entryCount, final int end) {
        this.memory = memory;
        this.swapped = memory.order() != ByteOrder.nativeOrder();
        this.firstEntry = firstEntry;
        this.entryCount = entryCount;
        this.end = end;
    }

    /**
     * Checks the prologue.
     *
     * @param shared the memory from its first byte to its limit; its position and order are not changed.
     * @throws NotPerfData if it is not performance data of version 2.
     */
    static PerfData of(final ByteBuffer shared) throws NotPerfData {
        final ByteBuffer memory = shared.duplicate().order(ByteOrder.BIG_ENDIAN);
        final int size = memory.limit();
        refuseUnless(size >= PROLOGUE_BYTES, "is " + size + " bytes long, shorter than its prologue");
        refuseUnless(memory.getInt(0) == MAGIC, "does not begin with the mark of performance data");
        final int order = memory.get(BYTE_ORDER_AT);
        refuseUnless(order == 0 || order == 1, "has the unknown byte order " + order);
        memory.order(order == 0 ? ByteOrder.BIG_ENDIAN : ByteOrder.LITTLE_ENDIAN);
        final int version = memory.get(MAJOR_VERSION_AT);
        refuseUnless(version == MAJOR_VERSION, "has version " + version + ", not " + MAJOR_VERSION);
        refuseUnless(memory.get(ACCESSIBLE_AT) == 1, "is not accessible yet");

        final int end = memory.getInt(USED_AT);
        refuseUnless(end >= PROLOGUE_BYTES && end <= size, "claims " + end + " of its " + size + " bytes");
        final int firstEntry = memory.getInt(ENTRY_OFFSET_AT);
        refuseUnless(firstEntry >= PROLOGUE_BYTES && firstEntry <= end, "has its first entry at " + firstEntry);
        final int entryCount = memory.getInt(ENTRY_COUNT_AT);
        refuseUnless(entryCount >= 0 && entryCount <= (end - firstEntry) / ENTRY_HEAD_BYTES,
            "claims " + entryCount + " entries in " + (end - firstEntry) + " bytes");
        return new PerfData(memory, firstEntry, entryCount, end);
    }

    /**
     * The offset of a counter's value.
     *
     * @throws NotPerfData if there is no such counter, or an entry before it is malformed.
     */
    int offsetOf(final String name) throws NotPerfData {
        int at = firstEntry;
        for (int n = 0; n < entryCount; n++) {
            refuseUnless(end - at >= ENTRY_HEAD_BYTES, "ends within entry " + n);
            final int length = memory.getInt(at);
            refuseUnless(length >= ENTRY_HEAD_BYTES && length <= end - at, "has entry " + n + " of length " + length);
            if (isNamed(name, at, length, n)) {
                return valueOffset(at, length, name);
            }
            at += length;
        }
        throw new NotPerfData("has no counter " + name);
    }

    /** The value at an offset from {@link #offsetOf}, as the JVM last stored it; later loads stay later. */
    long read(final int offset) {
        final long stored = (long) NATIVE_LONGS.getAcquire(memory, offset);
        return swapped ? Long.reverseBytes(stored) : stored;
    }

    /** The value of a counter that may be missing. */
    OptionalLong find(final String name) {
        try {
            return OptionalLong.of(read(offsetOf(name)));
        } catch (final NotPerfData e) {
            return OptionalLong.empty();
        }
    }

    private boolean isNamed(final String name, final int at, final int length, final int n) throws NotPerfData {
        final int nameOffset = memory.getInt(at + 4);
        refuseUnless(nameOffset >= ENTRY_HEAD_BYTES && nameOffset < length, "has the name of entry " + n + " outside it");
        final byte[] wanted = name.getBytes(StandardCharsets.US_ASCII);
        if (length - nameOffset <= wanted.length || memory.get(at + nameOffset + wanted.length) != 0) {
            return false;
        }
        final byte[] found = new byte[wanted.length];
        memory.get(at + nameOffset, found);
        return Arrays.equals(wanted, found);
    }

    private int valueOffset(final int at, final int length, final String name) throws NotPerfData {
        final boolean isLong = memory.get(at + 12) == 'J' && memory.getInt(at + 8) == 0;
        refuseUnless(isLong, "has " + name + " in a form other than one long");
        final int offset = memory.getInt(at + 16);
        refuseUnless(offset >= ENTRY_HEAD_BYTES && offset <= length - Long.BYTES, "has the value of " + name + " outside it");
        refuseUnless(memory.alignmentOffset(at + offset, Long.BYTES) == 0, "has the value of " + name + " astride two words");
        return at + offset;
    }

    private static void refuseUnless(final boolean holds, final String what) throws NotPerfData {
        if (!holds) {
            throw new NotPerfData(what);
        }
    }

    /** The memory cannot be parsed; the message says what is wrong, without a subject. */
    static final class NotPerfData extends Exception {
        private static final long serialVersionUID = 1;

        NotPerfData(final String what) {
            super(what, null, false, false);
        }
    }
}
