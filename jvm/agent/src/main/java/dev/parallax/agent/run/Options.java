package dev.parallax.agent.run;

import dev.parallax.agent.instrument.Library;
import dev.parallax.disturber.Mode;
import dev.parallax.disturber.Plan;
import dev.parallax.recorder.JvmFacts.EffectiveOption;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;

/** The given options: {@code key=value}, separated by commas; values contain no comma. */
public final class Options {
    private static final Duration MOST = Duration.ofHours(24);

    private final Map<Option, String> given = new EnumMap<>(Option.class);

    private Options() {}

    /** An invalid option; the message says what is wrong and what to do. */
    public static final class Invalid extends Exception {
        private static final long serialVersionUID = 1;

        Invalid(String why) {
            super(why, null, false, false);
        }
    }

    /**
     * Parses and validates all options, before anything is started.
     *
     * @param text after the agent's name; null and empty mean no options
     * @return the options
     * @throws Invalid for an unknown option or an invalid value
     */
    public static Options parse(String text) throws Invalid {
        Options options = new Options();
        for (String one : text == null || text.isBlank() ? new String[0] : text.split(",", -1)) {
            int equals = one.indexOf('=');
            String key = equals < 0 ? one.trim() : one.substring(0, equals).trim();
            Option option = Arrays.stream(Option.values())
                    .filter(known -> known.key.equals(key))
                    .findFirst()
                    .orElseThrow(() -> new Invalid("unknown option '" + key + "'; `help` lists the options"));
            if (equals < 0) {
                throw new Invalid(key + " needs a value: " + key + "=" + option.values);
            }
            if (options.given.put(option, one.substring(equals + 1).trim()) != null) {
                throw new Invalid(key + " is given twice");
            }
        }
        options.check();
        return options;
    }

    private void check() throws Invalid {
        out();
        interval();
        hiccup();
        canary();
        causes();
        control();
        log();
        endpoint();
        libraries();
        disturbance();
    }

    /**
     * Help text for all options.
     *
     * @return several lines
     */
    public static String help() {
        StringBuilder text = new StringBuilder("-javaagent:parallax-agent.jar=key=value,key=value\n")
                .append("java -jar parallax-agent.jar attach PID [key=value,key=value]\n");
        for (Option option : Option.values()) {
            String line = option.key + "=" + option.values;
            text.append(String.format("  %-30s %s", line, option.help));
            text.append(option.defaultValue.isEmpty() ? "\n" : " [" + option.defaultValue + "]\n");
        }
        return text.append("  TIME is a number with us, ms, s, m or h; SIZE is a number with KB, MB or GB (powers of 1024).\n")
                .append("  If the agent is already running in the JVM, attach changes the disturb options only; disturb=off ends the disturbance.\n")
                .toString();
    }

    /**
     * Effective values, including defaults.
     *
     * @return by name
     */
    public Map<String, EffectiveOption> effective() {
        Map<String, EffectiveOption> all = new LinkedHashMap<>();
        for (Option option : Option.values()) {
            all.put(option.key, new EffectiveOption(text(option), given.containsKey(option)));
        }
        return all;
    }

    Optional<Path> out() throws Invalid {
        String text = text(Option.OUT);
        if (given.containsKey(Option.OUT) && text.isEmpty()) {
            throw invalid(Option.OUT);
        }
        try {
            return text.isEmpty() ? Optional.empty() : Optional.of(Path.of(text));
        } catch (RuntimeException e) {
            throw invalid(Option.OUT);
        }
    }

    Duration interval() throws Invalid {
        return time(Option.INTERVAL, Duration.ofMillis(100), Duration.ofHours(1));
    }

    Optional<Duration> hiccup() throws Invalid {
        return isOff(Option.HICCUP)
                ? Optional.empty()
                : Optional.of(time(Option.HICCUP, Duration.ofNanos(100_000), Duration.ofSeconds(1)));
    }

    boolean canary() throws Invalid {
        return isOn(Option.CANARY);
    }

    boolean causes() throws Invalid {
        return isOn(Option.CAUSES);
    }

    boolean control() throws Invalid {
        return isOn(Option.CONTROL);
    }

    Optional<Duration> log() throws Invalid {
        return isOff(Option.LOG) ? Optional.empty() : Optional.of(time(Option.LOG, Duration.ofMillis(1), MOST));
    }

    OptionalInt endpoint() throws Invalid {
        if (isOff(Option.ENDPOINT)) {
            return OptionalInt.empty();
        }
        try {
            int port = Integer.parseInt(text(Option.ENDPOINT));
            if (port >= 0 && port <= 65_535) {
                return OptionalInt.of(port);
            }
        } catch (NumberFormatException e) {
            // Reported below.
        }
        throw invalid(Option.ENDPOINT);
    }

    Set<Library> libraries() throws Invalid {
        String text = text(Option.INSTRUMENT);
        Set<Library> all = EnumSet.allOf(Library.class);
        if (text.equals("all")) {
            return all;
        }
        Set<Library> some = EnumSet.noneOf(Library.class);
        if (!text.equals("none")) {
            for (String name : text.split("\\+", -1)) {
                some.add(all.stream()
                        .filter(one -> one.option().equals(name))
                        .findFirst()
                        .orElseThrow(() -> invalid(Option.INSTRUMENT)));
            }
        }
        return some;
    }

    /** Whether the option is given, even as {@code off}. */
    boolean hasDisturbance() {
        return given.containsKey(Option.DISTURB);
    }

    Optional<Plan> disturbance() throws Invalid {
        long rate = size(Option.DISTURB_RATE);
        String share = text(Option.DISTURB_SHARE);
        if (!share.matches("[0-9]{1,2}(\\.[0-9]{1,3})?%")) {
            throw invalid(Option.DISTURB_SHARE);
        }
        double part = Double.parseDouble(share.substring(0, share.length() - 1)) / 100;
        Duration after = time(Option.DISTURB_AFTER, Duration.ZERO, MOST);
        Duration length = time(Option.DISTURB_FOR, Duration.ofMillis(100), MOST);
        if (isOff(Option.DISTURB)) {
            return Optional.empty();
        }
        Mode mode = Arrays.stream(Mode.values())
                .filter(one -> one.option().equals(text(Option.DISTURB)))
                .findFirst()
                .orElseThrow(() -> invalid(Option.DISTURB));
        try {
            return Optional.of(new Plan(mode, rate, part, after, length));
        } catch (IllegalArgumentException e) {
            throw new Invalid(e.getMessage());
        }
    }

    private String text(Option option) {
        return given.getOrDefault(option, option.defaultValue);
    }

    private boolean isOff(Option option) {
        return text(option).equals("off");
    }

    private boolean isOn(Option option) throws Invalid {
        String text = text(option);
        if (!text.equals("on") && !text.equals("off")) {
            throw invalid(option);
        }
        return text.equals("on");
    }

    private Duration time(Option option, Duration least, Duration most) throws Invalid {
        String text = text(option);
        if (!text.matches("[0-9]{1,9}(us|ms|s|m|h)")) {
            throw invalid(option);
        }
        String unit = text.replaceFirst("[0-9]+", "");
        long number = Long.parseLong(text.substring(0, text.length() - unit.length()));
        Duration time =
                switch (unit) {
                    case "us" -> Duration.ofNanos(number * 1_000);
                    case "ms" -> Duration.ofMillis(number);
                    case "s" -> Duration.ofSeconds(number);
                    case "m" -> Duration.ofMinutes(number);
                    default -> Duration.ofHours(number);
                };
        if (time.compareTo(least) < 0 || time.compareTo(most) > 0) {
            throw invalid(option);
        }
        return time;
    }

    private long size(Option option) throws Invalid {
        String text = text(option);
        if (!text.matches("[0-9]{1,6}(KB|MB|GB)")) {
            throw invalid(option);
        }
        long number = Long.parseLong(text.substring(0, text.length() - 2));
        return number << (text.endsWith("KB") ? 10 : text.endsWith("MB") ? 20 : 30);
    }

    private Invalid invalid(Option option) {
        return new Invalid(option.key + "=" + text(option) + " is invalid; use " + option.key + "=" + option.values + ": "
                + option.help);
    }
}
