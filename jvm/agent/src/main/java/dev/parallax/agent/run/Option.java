package dev.parallax.agent.run;

/** The agent's options: name, what may stand behind it, what holds without it, and what it is for. */
enum Option {
    OUT("out", "DIR", "", "write a record there: intervals, .hlog files, events; read it with `parallax report DIR`"),
    INTERVAL("interval", "TIME", "1s", "how long an interval of the record is; from 100ms on"),
    HICCUP("hiccup", "TIME|off", "1ms", "how often the hiccup meter looks; from 100us to 1s"),
    CANARY("canary", "on|off", "on", "a virtual thread that looks as often (JDK 21 and later)"),
    CAUSES("causes", "on|off", "on", "ask the flight recorder why; off saves some milliseconds of CPU a second"),
    CONTROL("control", "on|off", "off", "a second, idle JVM that looks as well: what both see is the host's"),
    LOG("log", "TIME|off", "100ms", "a line on standard error for each hiccup of that length or more, with its causes"),
    ENDPOINT("endpoint", "PORT|off", "off", "answer GET / and /json on loopback; 0 takes any port and says which"),
    INSTRUMENT("instrument", "all|none|NAME+NAME", "all",
            "pools apart from requests: httpclient5 (from 5.6 on), hikaricp (from 5.0.1 on), jdkhttp, commonspool2, lettuce"),
    DISTURB("disturb", "MODE|off", "off",
            "fragmentation, humongous, allocation-stall, time-to-safepoint, metaspace, thread-stacks"),
    DISTURB_RATE("disturb-rate", "SIZE", "50MB", "how much a second"),
    DISTURB_SHARE("disturb-share", "N%", "10%", "how much of the largest heap is held; up to 50%"),
    DISTURB_AFTER("disturb-after", "TIME", "0s", "when it begins, from the agent's start"),
    DISTURB_FOR("disturb-for", "TIME", "60s", "how long it lasts; up to 24h");

    final String key;
    final String values;
    final String otherwise;
    final String help;

    Option(String key, String values, String otherwise, String help) {
        this.key = key;
        this.values = values;
        this.otherwise = otherwise;
        this.help = help;
    }
}
