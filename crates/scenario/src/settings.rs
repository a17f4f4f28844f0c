//! The tables `[run]` and `[output]`: options of the command line under their own names, so that each is parsed in one
//! place, and there is one list of names.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use toml::Spanned;

use crate::place::{Slip, Span};
use crate::values::Scalars;

/// An option that the file sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The long name of the option, without its dashes.
    pub option: &'static str,
    /// More than one if the option is repeated.
    pub values: Vec<String>,
    /// Its place in the file, for messages.
    pub place: String,
    pub origin: SettingOrigin,
}

/// Where an option comes from that is not on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingOrigin {
    File,
    /// By `--set`.
    Set,
}

/// `[run]` as written.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunSettings(pub Given);

/// `[output]` as written.
#[derive(Debug, Clone, Default)]
pub(crate) struct OutputSettings(pub Given);

/// Keys in file order, each with its values.
pub(crate) type Given = Vec<(Spanned<String>, Spanned<Scalars>)>;

/// A key, its option, and its description.
pub(crate) struct Key {
    pub key: &'static str,
    pub option: &'static str,
    pub form: Form,
    #[cfg_attr(not(test), expect(dead_code, reason = "a description in the schema"))]
    pub about: &'static str,
}

/// The form of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Count,
    Time,
    /// A time, or `off`.
    Limit,
    Rate,
    Size,
    Text,
    List,
    Flag,
}

pub(crate) const RUN: &[Key] = &[
    key("duration", "duration", Form::Time, "How long to schedule arrivals."),
    key("count", "count", Form::Count, "Number of arrivals to schedule."),
    key("rate", "rate", Form::Rate, "Open loop at this rate of arrivals: 500/s, 10k/s."),
    key("stages", "stage", Form::List, "Open loop in stages, one after another: 'ramp 100/s..1k/s 30s'."),
    key("replay", "replay", Form::Text, "Open loop at the times of a recording."),
    key("speed", "speed", Form::Text, "Speed of the replay: 2x."),
    key(
        "replay_column",
        "replay-column",
        Form::Text,
        "Field, header or column that has the times of a recording.",
    ),
    key("arrivals", "arrivals", Form::Text, "How arrivals are spaced."),
    key("jitter", "jitter", Form::Text, "Random time by which arrivals are moved, plus or minus."),
    key("seed", "seed", Form::Count, "Random seed; the same seed reproduces the same run."),
    key("users", "users", Form::Count, "Closed loop: number of virtual users."),
    key("max_in_flight", "max-in-flight", Form::Count, "Open loop: maximum journeys in progress or queued."),
    key(
        "callers",
        "callers",
        Form::Count,
        "Older name of users (closed loop) and max_in_flight (open loop).",
    ),
    key(
        "think",
        "think",
        Form::Text,
        "Closed loop: think time before a virtual user starts its next journey.",
    ),
    key("connections", "connections", Form::Count, "Connections per server."),
    key("streams", "streams", Form::Count, "Maximum concurrent streams per HTTP/2 connection."),
    key("pipeline", "pipeline", Form::Count, "Maximum requests in flight per HTTP/1.1 connection."),
    key("http", "http", Form::Text, "HTTP version: auto, 1.1, 2, h2c."),
    key("workers", "workers", Form::Count, "Threads, each with its share of the connections."),
    key(
        "pace",
        "pace",
        Form::Text,
        "How closely an open loop follows its schedule: precise, balanced, efficient.",
    ),
    key(
        "timeout",
        "timeout",
        Form::Limit,
        "Request timeout, from the first byte sent to the last byte of the response.",
    ),
    key("connect_timeout", "connect-timeout", Form::Limit, "Timeout for opening a connection."),
    key(
        "checkout_timeout",
        "checkout-timeout",
        Form::Limit,
        "Timeout for getting a connection from the pool.",
    ),
    key("drain", "drain", Form::Limit, "How long to wait for outstanding responses at the end."),
    key("max_head", "max-head", Form::Size, "Maximum header size of a response."),
    key("max_body", "max-body", Form::Size, "Maximum body size of a response."),
    key("warmup", "warmup", Form::Time, "How long the same load precedes the run, in none of its figures."),
    key(
        "idle_connections",
        "idle-connections",
        Form::Count,
        "Connections per server that are opened before the run and carry nothing.",
    ),
    key(
        "reconnect_every",
        "reconnect-every",
        Form::Count,
        "Number of requests after which a connection is replaced.",
    ),
    key("connect_rate", "connect-rate", Form::Rate, "Maximum rate of opening connections: 100/s."),
    key(
        "setup_query",
        "setup-query",
        Form::List,
        "SQL that each new connection to a database executes at the end of its login.",
    ),
    key("server_account", "server-account", Form::Flag, "Record what the database server counted."),
    key("stamps", "stamps", Form::Text, "Where the arrival of a response is timestamped: kernel or read."),
];

pub(crate) const OUTPUT: &[Key] = &[
    key("folder", "output", Form::Text, "Results directory."),
    key("json", "json", Form::Flag, "Print the result as JSON."),
    key("quiet", "quiet", Form::Flag, "Suppress progress output."),
];

const fn key(key: &'static str, option: &'static str, form: Form, about: &'static str) -> Key {
    Key { key, option, form, about }
}

/// The settings of a table, with the form of each value checked.
pub(crate) fn read(
    given: &Given,
    known: &'static [Key],
    mut add: impl FnMut(&'static Key, Vec<String>, Span),
) -> Result<(), Slip> {
    for (name, values) in given {
        let found = known.iter().find(|key| key.key == name.get_ref());
        let key = found.ok_or_else(|| unknown(name, known))?;
        let span = values.span();
        let texts = values.get_ref().0.clone();
        if key.form != Form::List && texts.len() != 1 {
            return Err(Slip::new(&span, format!("`{}` takes one value, not a list", key.key)));
        }
        for text in &texts {
            key.form.check(text).map_err(|what| Slip::new(&span, format!("`{}`: {what}", key.key)))?;
        }
        add(key, texts, span);
    }
    Ok(())
}

fn unknown(name: &Spanned<String>, known: &'static [Key]) -> Slip {
    let keys = || known.iter().map(|key| key.key);
    let meant = crate::place::did_you_mean(name.get_ref(), keys());
    let advice = if meant.is_empty() {
        format!("; valid keys are {}", keys().collect::<Vec<_>>().join(", "))
    } else {
        meant
    };
    Slip::new(&name.span(), format!("`{}` is not a key here{advice}", name.get_ref()))
}

impl Form {
    fn check(self, text: &str) -> Result<(), String> {
        let time = |text: &str| text.parse::<units::Nanos>().map(|_| ()).map_err(|error| error.to_string());
        match self {
            Form::Count => units::parse_count(text).map(|_| ()).map_err(|error| error.to_string()),
            Form::Time => time(text),
            Form::Limit if text == "off" => Ok(()),
            Form::Limit => time(text).map_err(|error| format!("{error}, or off")),
            Form::Rate => text.parse::<units::Rate>().map(|_| ()).map_err(|error| error.to_string()),
            Form::Size => text.parse::<units::Bytes>().map(|_| ()).map_err(|error| error.to_string()),
            Form::Flag if matches!(text, "true" | "false") => Ok(()),
            Form::Flag => Err(format!("`{text}` is neither true nor false")),
            Form::Text | Form::List => Ok(()),
        }
    }
}

impl<'de> Deserialize<'de> for RunSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RunSettings, D::Error> {
        deserializer.deserialize_map(GivenVisitor).map(RunSettings)
    }
}

impl<'de> Deserialize<'de> for OutputSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<OutputSettings, D::Error> {
        deserializer.deserialize_map(GivenVisitor).map(OutputSettings)
    }
}

struct GivenVisitor;

impl<'de> Visitor<'de> for GivenVisitor {
    type Value = Given;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table of options")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Given, A::Error> {
        let mut given = Given::new();
        while let Some(key) = map.next_key()? {
            given.push((key, map.next_value()?));
        }
        Ok(given)
    }
}

/// `[thresholds] fail_if`.
pub(crate) const FAIL_IF: Key = key("fail_if", "fail-if", Form::List, "Conditions that make the run fail.");
