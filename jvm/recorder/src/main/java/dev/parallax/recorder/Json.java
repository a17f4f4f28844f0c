package dev.parallax.recorder;

import java.util.List;
import java.util.Locale;
import java.util.Map;

/** Writes JSON from maps (in their order), lists, strings, integers, booleans and null. There is no parser. */
final class Json {
    private Json() {}

    static String of(Object value) {
        StringBuilder text = new StringBuilder();
        write(value, text);
        return text.toString();
    }

    private static void write(Object value, StringBuilder text) {
        if (value instanceof Map<?, ?> map) {
            String separator = "{";
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                text.append(separator);
                write(entry.getKey(), text);
                text.append(':');
                write(entry.getValue(), text);
                separator = ",";
            }
            text.append(map.isEmpty() ? "{}" : "}");
        } else if (value instanceof List<?> list) {
            text.append('[');
            String separator = "";
            for (Object one : list) {
                text.append(separator);
                write(one, text);
                separator = ",";
            }
            text.append(']');
        } else if (value instanceof CharSequence chars) {
            writeText(chars, text);
        } else if (value == null || value instanceof Long || value instanceof Integer || value instanceof Boolean) {
            text.append(value);
        } else {
            throw new IllegalArgumentException("cannot write " + value.getClass() + " as JSON");
        }
    }

    private static void writeText(CharSequence chars, StringBuilder text) {
        text.append('"');
        for (int i = 0; i < chars.length(); i++) {
            char c = chars.charAt(i);
            boolean isHalf = Character.isHighSurrogate(c)
                    ? i + 1 == chars.length() || !Character.isLowSurrogate(chars.charAt(i + 1))
                    : Character.isLowSurrogate(c) && (i == 0 || !Character.isHighSurrogate(chars.charAt(i - 1)));
            if (c == '"' || c == '\\') {
                text.append('\\').append(c);
            } else if (c < ' ') {
                text.append(String.format(Locale.ROOT, "\\u%04x", (int) c));
            } else {
                text.append(isHalf ? '\ufffd' : c);
            }
        }
        text.append('"');
    }
}
