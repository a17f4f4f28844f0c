package dev.parallax.agent.run;

/** The agent's options: name, values, default and help text. */
enum Option {
    OUT("out", "DIR", "", "write a record (intervals, .hlog files, events) to this folder; `parallax report DIR` reads it"),
    INTERVAL("interval", "TIME", "1s", "length of the record's intervals; at least 100ms"),
    HICCUP("hiccup", "TIME|off", "1ms", "period of the hiccup meter; 100us to 1s"),
    CANARY("canary", "on|off", "on", "a second hiccup meter on a virtual thread (JDK 21 and later)"),
    CAUSES("causes", "on|off", "on", "get causes from the flight recorder; costs a few milliseconds of CPU per second"),
    CONTROL("control", "on|off", "off", "an idle JVM with its own hiccup meter: hiccups seen by both come from the host"),
    LOG("log", "TIME|off", "100ms", "log each hiccup of at least this length with its causes on standard error"),
    ENDPOINT("endpoint", "PORT|off", "off", "serve GET / and /json on the loopback interface; 0 picks and prints a free port"),
    INSTRUMENT("instrument", "all|none|NAME+NAME", "all",
            "libraries to instrument: httpclient5 (5.6 or later), hikaricp (5.0.1 or later), jdkhttp, commonspool2, lettuce"),
    DISTURB("disturb", "MODE|off", "off",
            "inject a disturbance: fragmentation, humongous, allocation-stall, time-to-safepoint, metaspace, thread-stacks"),
    DISTURB_RATE("disturb-rate", "SIZE", "50MB", "rate of the disturbance per second"),
    DISTURB_SHARE("disturb-share", "N%", "10%", "share of the maximum heap it holds; up to 50%"),
    DISTURB_AFTER("disturb-after", "TIME", "0s", "delay from the start of the agent"),
    DISTURB_FOR("disturb-for", "TIME", "60s", "duration of the disturbance; up to 24h");

    final String key;
    final String values;
    final String defaultValue;
    final String help;

    Option(String key, String values, String defaultValue, String help) {
        this.key = key;
        this.values = values;
        this.defaultValue = defaultValue;
        this.help = help;
    }
}
